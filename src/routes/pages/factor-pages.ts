/** The pages of a signed-in user: the second factor, and passkeys. Not a route. */
import type { Caller } from '../../auth/auth.ts';
import type { StoredPasskey } from '../../auth/factors/passkey-rows.ts';
import { clientOf } from '../../http/request.ts';
import { parseUuid } from '../../policy/values.ts';
import { Problem, problemOfError } from '../../problem.ts';
import { passkeyName, registrationResponse } from '../auth/passkeys/passkey-shapes.ts';
import {
  type AccountPage,
  CODE_FIELD,
  done,
  type FormValues,
  PASSWORD_FIELD,
  RESPONSE_FIELD,
  readCredential,
  type Submitted,
  type Visit,
} from './account-page.ts';
import type { FormField, PageLink, ShownForm, ShownPage } from './form-page.ts';
import { passkeyScript } from './passkey-script.ts';

/** The part of the page that a form asks for. */
const STEP_FIELD: FormField = { name: 'step', label: '', type: 'hidden' };
const FACTOR_LINK: PageLink = { to: '/auth/second-factor', text: 'Second factor' };
const PASSKEYS_LINK: PageLink = { to: '/auth/passkeys', text: 'Passkeys' };

/** The pages that a user finds after a sign-in. */
export const accountLinks = (): readonly PageLink[] => [
  FACTOR_LINK,
  ...(passkeyScript() === undefined ? [] : [PASSKEYS_LINK]),
];

/** The user of the session. Throws `unauthenticated`. */
export function userAt({ state }: Visit['ctx']): Caller {
  const caller: Caller | undefined = state.caller;
  if (caller?.kind === 'user') return caller;
  throw new Problem('unauthenticated', 'sign in first');
}

const step = (page: string, name: string, button: string, ...fields: readonly FormField[]): ShownForm => ({
  page,
  fields: [STEP_FIELD, ...fields],
  button,
  values: new Map([['step', name]]),
});

type FactorStep = (visit: Visit, user: Caller) => Promise<Submitted>;

async function submittedStep(steps: Readonly<Record<string, FactorStep>>, visit: Visit): Promise<Submitted> {
  const name = visit.values.get('step');
  if (!Object.hasOwn(steps, name)) throw new Problem('validation_failed', 'use a button of the page');
  return steps[name]!(visit, userAt(visit.ctx));
}

const FACTOR = 'second-factor';
const factorStep = (name: string, button: string, ...fields: readonly FormField[]) =>
  step(FACTOR, name, button, ...fields);

export const secondFactorPage: AccountPage = {
  name: FACTOR,
  title: 'Second factor',
  fields: [],
  button: '',
  knowsCaller: true,
  async show(_ctx, app, user) {
    if (!(await app.auth.secondFactors.isEnrolled(user)))
      return {
        title: 'Second factor',
        text: 'An authenticator app makes a code that each sign-in asks for.',
        forms: [factorStep('enrol', 'Set up an authenticator app')],
      };
    return {
      title: 'Second factor',
      text: 'Each sign-in asks for a code of your authenticator app. A recovery code works in its place, once.',
      forms: [
        ...(user.auth.second_factor === true ? [] : [factorStep('confirm', 'Use it in this session, too', CODE_FIELD)]),
        factorStep('recovery', 'Make new recovery codes', CODE_FIELD),
        factorStep('remove', 'Remove it by a code', CODE_FIELD),
        factorStep('remove', 'Remove it by the password', PASSWORD_FIELD),
      ],
    };
  },
  submit: (visit) => submittedStep(FACTOR_STEPS, visit),
};

const FACTOR_STEPS: Readonly<Record<string, FactorStep>> = {
  async enrol({ app }, user) {
    const { secret, qr } = await app.auth.secondFactors.enrol(user);
    const show: ShownPage = {
      title: 'Set up an authenticator app',
      text: 'Read the picture with the app, or type the key into it. Then enter the code that it shows.',
      picture: qr,
      words: [secret],
      forms: [factorStep('enrolled', 'Confirm', CODE_FIELD)],
    };
    return { show };
  },
  async enrolled({ app, ctx, values }, user) {
    return codesShown(await app.auth.secondFactors.confirm(user, values.get('code').trim(), clientOf(ctx)));
  },
  async recovery({ app, ctx, values }, user) {
    return codesShown(await app.auth.secondFactors.renewRecovery(user, values.get('code').trim(), clientOf(ctx)));
  },
  async confirm({ app, ctx, values }, user) {
    await app.auth.stepUp.confirm(user, { code: values.get('code').trim() }, clientOf(ctx));
    return done('Done', 'This session has the second factor.', FACTOR_LINK);
  },
  async remove({ app, ctx, values }, user) {
    const [code, password] = [values.get('code').trim(), values.get('password')];
    await app.auth.secondFactors.remove(user, password === '' ? { code } : { password }, clientOf(ctx));
    return done('Done', 'The second factor is removed.', FACTOR_LINK);
  },
};

const codesShown = (words: readonly string[]): Submitted => ({
  show: {
    title: 'Recovery codes',
    text: 'Keep these codes: each works once, in place of a code of the app. They are not shown again.',
    words,
    links: accountLinks(),
  },
});

const NAME_FIELD: FormField = { name: 'name', label: 'Name of the new passkey', type: 'text', autocomplete: 'off' };
const ID_FIELD: FormField = { name: 'id', label: '', type: 'hidden' };

export const passkeysPage: AccountPage = {
  name: 'passkeys',
  title: 'Passkeys',
  fields: [],
  button: '',
  knowsCaller: true,
  isOffered: () => passkeyScript() !== undefined,
  async show(_ctx, app, user) {
    const passkeys = await app.auth.passkeys.list(user);
    return {
      title: 'Passkeys',
      text: 'A passkey signs you in without a password and without a code.',
      forms: [
        ...passkeys.flatMap((passkey) => [
          passkeyStep(passkey, 'rename', 'Rename', NAME_FIELD),
          passkeyStep(passkey, 'remove', 'Remove'),
        ]),
        step('passkeys', 'options', 'Add a passkey', NAME_FIELD),
      ],
      links: [FACTOR_LINK],
    };
  },
  submit: (visit) => submittedStep(PASSKEY_STEPS, visit),
};

/** The button names its passkey. */
const passkeyStep = (
  { id, name }: StoredPasskey,
  does: string,
  verb: string,
  ...fields: readonly FormField[]
): ShownForm => ({
  ...step('passkeys', does, `${verb} ${name}`, ID_FIELD, ...fields),
  values: new Map([
    ['step', does],
    ['id', id],
    ['name', name],
  ]),
});

const PASSKEY_STEPS: Readonly<Record<string, FactorStep>> = {
  async options({ app, values }, user) {
    const options = await app.auth.passkeys.creationOptions(user);
    const form: ShownForm = {
      page: 'passkeys',
      fields: [STEP_FIELD, { ...NAME_FIELD, type: 'hidden' }, RESPONSE_FIELD],
      button: 'Make the passkey',
      values: new Map([
        ['step', 'add'],
        ['name', values.get('name')],
      ]),
      ceremony: { does: 'create', options },
    };
    return {
      show: { title: 'A new passkey', text: 'Your browser asks for your device or security key.', forms: [form] },
    };
  },
  async add({ app, ctx, values }, user) {
    const name = readName(values.get('name'));
    const response = readCredential(registrationResponse, values.get('response'));
    await app.auth.passkeys.add(user, { name, response, client: clientOf(ctx) });
    return done('Done', `The passkey ${name} is yours.`, PASSKEYS_LINK);
  },
  async rename({ app, values }, user) {
    const { name } = await app.auth.passkeys.rename(user, passkeyIdOf(values), readName(values.get('name')));
    return done('Done', `The passkey is called ${name}.`, PASSKEYS_LINK);
  },
  async remove({ app, ctx, values }, user) {
    const id = passkeyIdOf(values);
    await app.auth.passkeys.remove(user, id, clientOf(ctx));
    return done('Done', 'The passkey is removed.', PASSKEYS_LINK);
  },
};

/** Throws `not_found`. */
function passkeyIdOf(values: FormValues): string {
  const id = parseUuid(values.get('id'));
  if (id === undefined) throw new Problem('not_found', 'you have no such passkey');
  return id;
}

/** Throws `validation_failed`. */
function readName(given: string): string {
  const read = passkeyName.safeParse(given);
  if (read.success) return read.data;
  const detail = read.error.issues[0]?.message ?? 'expected a name';
  throw problemOfError('validation_failed', { pointer: '/name', code: 'invalid_value', detail });
}
