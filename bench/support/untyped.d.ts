declare module 'jexl' {
  interface Compiled {
    evalSync(context: Record<string, unknown>): unknown;
  }
  const jexl: { compile(expression: string): Compiled };
  export default jexl;
}
declare module 'json-logic-js' {
  const jsonLogic: { apply(rule: unknown, data: unknown): unknown };
  export default jsonLogic;
}
