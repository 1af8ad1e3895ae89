/** A fault of the parser or the checker, and the texts that show it. */
export class FrontEndFault extends Error {
  readonly text: string;

  constructor(message: string, texts: readonly string[]) {
    super(message);
    this.text = texts.join('\n              ');
  }
}
