import { object, TEXT } from '../../../describe/operation.ts';
import { callerOf } from '../../../http/gate.ts';
import { route } from '../../define-route.ts';

export const enrolTotp = route({
  method: 'POST',
  path: '/api/auth/totp/enrol',
  door: 'user',
  id: 'enrol_totp',
  summary: 'Begin to enrol an authenticator app as second factor',
  description:
    'It counts once a code of it is confirmed, within an hour; until then, another call makes another secret.',
  answers: {
    200: {
      description: 'The secret, in no other answer.',
      shape: () =>
        object({
          secret: { ...TEXT, description: 'In base32.' },
          uri: { ...TEXT, description: '`otpauth://totp/…`' },
          qr: { ...TEXT, description: 'A QR code of the URI, as an SVG.' },
        }),
    },
  },
  problems: ['too_many'],
  async handle(ctx, app) {
    const enrolment = await app.auth.secondFactors.enrol(callerOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = enrolment;
  },
});
