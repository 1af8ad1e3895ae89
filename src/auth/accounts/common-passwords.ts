/**
 * Passwords that are guessed first: the words and patterns at the head of every published list of
 * leaked passwords, with the decorations that people add. NIST SP 800-63B §5.1.1.2 requires such a
 * list, with the context (the address) on it.
 */
const PASSWORD_WORDS = `
password passwort passw0rd motdepasse contrasena senha parola haslo wachtwoord qwerty qwertz azerty qwertyuiop asdfghjkl zxcvbnm asdf qwer
letmein welcome willkommen bienvenue admin administrator root toor user guest test testing tester demo default changeme secret geheim login
master monkey dragon football baseball basketball soccer hockey superman batman spiderman iloveyou ilovey0u loveyou love lovely princess sunshine
shadow michael jennifer jessica ashley daniel jordan thomas robert charlie andrew matthew joshua anthony william nicole amanda michelle hannah
samantha elizabeth martin george maggie buster bailey harley ranger hunter killer trustno whatever freedom starwars pokemon computer internet
samsung google facebook twitter linkedin youtube yahoo hotmail microsoft windows apple iphone android summer winter spring autumn monday friday
january february march april may june july august september october november december london berlin paris liverpool arsenal chelsea barcelona
juventus flower cookie chocolate banana orange purple yellow silver golden diamond cheese coffee pepper ginger butterfly angel heaven jesus
christ blessed family friends forever babygirl babyboy sweetheart tinkerbell mustang corvette ferrari porsche mercedes yamaha honda
access pass abc abcd abcde abcdef abcdefg abcdefgh abcabc abcxyz hello hallo bonjour mynoob nothing nopass nopassword newpassword mypassword
thepassword yourpassword oldpassword temppassword temp temporary qazwsx qazwsxedc zaqxsw wsxedc qweasd qweasdzxc asdzxc
`;
const WHOLE_PASSWORDS = `
1q2w3e4r 1q2w3e4r5t 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 q1w2e3r4 q1w2e3r4t5 zaq12wsx zaq1zaq1 zaq1xsw2 qwe123qwe 123qwe123 asd123asd a1b2c3d4 1a2b3c4d a1s2d3f4
12345678 123456789 1234567890 0123456789 987654321 9876543210 87654321 11223344 1122334455 12344321 123454321 12341234 123123123 147258369 147852369
159753456 789456123 741852963 963852741 321654987 456789123 102030405 1029384756 31415926 314159265 27182818 13131313 12121212 10203040 01012011
qwerty12345678 qwer1234 asdf1234 zxcv1234 abcd1234 abc12345 1234abcd 1234qwer 12345qwert password1234 letmein12 adminadmin rootroot passpass testtest
correcthorsebatterystaple correct horse battery staple
`;
const wordsIn = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');
const knownWords = new Set(wordsIn(PASSWORD_WORDS));
const whole = new Set([...wordsIn(WHOLE_PASSWORDS), 'correct horse battery staple']);

const KEYBOARD: readonly string[] = [
  'abcdefghijklmnopqrstuvwxyz',
  '01234567890',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
].flatMap((row) => [row, [...row].reverse().join('')]);

const LEET: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};
const withoutLeet = (text: string): string => text.replace(/[013457@$!]/g, (mark) => LEET[mark] ?? mark);

/** Removes the marks at both ends, in linear time, which an expression with `+$` does not take. */
function trimmed(text: string, mark: RegExp): string {
  const characters = [...text];
  const isKept = (character: string): boolean => !mark.test(character);
  const first = characters.findIndex(isKept);
  return first < 0 ? '' : characters.slice(first, characters.findLastIndex(isKept) + 1).join('');
}

/** `password`: after NFKC. */
export function isCommon(password: string, email: string): boolean {
  const text = password.toLowerCase();
  const core = trimmed(text, /\P{L}/u);
  const undecorated = trimmed(text, /[\d\s!@#$%^&*().,_+=?-]/u);
  const forms = [
    text,
    core,
    undecorated,
    withoutLeet(text),
    withoutLeet(undecorated),
    withoutLeet(undecorated).replace(/i$/, ''),
  ];
  return (
    whole.has(text) ||
    forms.some((form) => knownWords.has(form)) ||
    isRepetition(text) ||
    isRun(text) ||
    isPartOfAddress(forms, email.toLowerCase())
  );
}

/** The longest repetition of one to four characters that is guessed. */
const MAX_REPETITION = 64;
const isRepetition = (text: string): boolean =>
  text.length <= MAX_REPETITION && /^(.{1,4}?)\1+.{0,3}$/su.test(text) && new Set(text).size <= 4;

function isRun(text: string): boolean {
  return KEYBOARD.some((row) => row.includes(text) || row.repeat(2).includes(text));
}

function isPartOfAddress(forms: readonly string[], email: string): boolean {
  const [local = '', domain = ''] = email.split('@');
  const names = [email, local, domain, domain.split('.')[0] ?? ''].filter((name) => name.length >= 3);
  return forms.some((form) => names.includes(form));
}
