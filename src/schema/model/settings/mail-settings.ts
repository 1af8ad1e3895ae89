/** The part of the file about mails: their sender, and the addresses that their links lead to. */
import type { Report } from '../../file/issue.ts';
import type { SchemaFile } from '../../file/shape.ts';
import type { MailOptions, MailUrl } from '../model.ts';

const MAIL_URLS = [
  'verify_url',
  'reset_url',
  'invite_url',
  'login_url',
  'email_change_url',
] as const satisfies readonly MailUrl[];

const TOKEN = '{token}';
/** Matches an address, or a name and an address in `<>`. */
const SENDER = /^(?:[^\s@<>]+@[^\s@<>]+|[^<>\r\n]*<[^\s@<>]+@[^\s@<>]+>)$/;

export function readMail({ mail = {} }: SchemaFile, report: Report): MailOptions {
  for (const key of ['from', 'reply_to'] as const) {
    const value = mail[key];
    if (value === undefined || SENDER.test(value)) continue;
    const message = `\`${value}\` is not an address; expected one such as \`App <hello@example.com>\``;
    report({ code: 'invalid_mail', message, path: ['mail', key] });
  }
  for (const key of MAIL_URLS) {
    const value = mail[key];
    if (value === undefined || isLinkTemplate(value)) continue;
    const message = `expected an address with one \`${TOKEN}\`, such as \`https://app.example.com/?token=${TOKEN}\``;
    report({ code: 'invalid_mail', message, path: ['mail', key] });
  }
  const urls = Object.fromEntries(MAIL_URLS.map((key) => [key, mail[key]])) as MailOptions['urls'];
  if (mail.logo !== undefined && !isPicture(mail.logo)) {
    const message = 'expected a path such as `/logo.svg`, or an https address';
    report({ code: 'invalid_mail', message, path: ['mail', 'logo'] });
  }
  const languages = mail.languages ?? ['en'];
  languages.forEach((language, i) => {
    if (/^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/.test(language) && languages.indexOf(language) === i) return;
    const message = `\`${language}\` is not a language, or is given twice; expected a tag such as \`de\` or \`pt-BR\``;
    report({ code: 'invalid_mail', message, path: ['mail', 'languages', i] });
  });
  return {
    from: mail.from,
    appName: mail.app_name,
    replyTo: mail.reply_to,
    logo: mail.logo,
    languages,
    templates: mail.templates,
    notices: mail.notices ?? true,
    otp: mail.otp ?? false,
    urls,
  };
}

function isPicture(text: string): boolean {
  if (/^\/(?![/\\])/.test(text)) return true;
  return URL.canParse(text) && new URL(text).protocol === 'https:';
}

/** A link of the web, or of an app that claims its scheme. */
function isLinkTemplate(text: string): boolean {
  const [before = '', ...after] = text.split(TOKEN);
  if (after.length !== 1 || !URL.canParse(before + after[0])) return false;
  return !/^(?:javascript|data|vbscript|file):$/.test(new URL(before + after[0]).protocol);
}
