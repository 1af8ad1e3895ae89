// Thanks everyone who applies on the careers page: `node worker.mjs`.
import { events } from 'bylaw/events';
import nodemailer from 'nodemailer';

const mails = nodemailer.createTransport(process.env.SMTP_URL);
const letters = events({
  url: process.env.BYLAW_URL,
  key: process.env.BYLAW_KEY,
  collection: 'submissions',
  filter: 'state = "new"',
  events: ['enter'],
  position: './submissions.position',
});

for await (const event of letters) {
  // The first start, or more than seven days away: the tracker shows the letters that wait.
  if (event.type === 'reset') continue;
  const { name, email: to, id } = event.record;
  const text = `Dear ${name},\n\nwe have received your application, and will write to you soon.\n`;
  await mails.sendMail({
    from: process.env.MAIL_FROM,
    to,
    subject: 'Your application',
    text,
    messageId: `<${id}@careers>`,
  });
}
