/**
 * The text of a schema file → the schema, or every error of the file at once, each at its place.
 * Runs without Node.
 */
import type { Catalog } from '../policy/types.ts';
import { warnOfClosedRegistration } from './advice/closed-registration.ts';
import { warnOfGuessableValues } from './advice/guessable-values.ts';
import { warnOfPrivilegeEscalation } from './advice/privilege-escalation.ts';
import { warnOfPublicReferences } from './advice/public-references.ts';
import { warnOfRacingRules } from './advice/racing-rules.ts';
import { type AdviceContext, readAccess, readMemberAccess, readRestore } from './advice/read-access.ts';
import { warnOfRevealingChecks } from './advice/revealing-checks.ts';
import { checkRouting } from './advice/routing-advice.ts';
import { warnOfSelfMadeEvidence } from './advice/self-made-evidence.ts';
import { registeredRoles } from './advice/strangers.ts';
import type { Finding, SchemaIssue } from './file/issue.ts';
import { SourceText } from './file/source.ts';
import { readShape } from './file/validate.ts';
import { type Bare, declareCollections } from './model/collections.ts';
import { rolesOfPolicies } from './model/guest-access.ts';
import { checkFeeds } from './model/logged-tables.ts';
import type { Schema } from './model/model.ts';
import { readCookie } from './model/settings/cookie-settings.ts';
import { readMail } from './model/settings/mail-settings.ts';
import { readOAuth, readRedirects } from './model/settings/oauth-settings.ts';
import { readSeed } from './model/settings/seed-settings.ts';
import {
  readAuditSettings,
  readLimits,
  readOrigins,
  readPasskeys,
  readProxies,
  readRegister,
  readRoles,
  readSecondFactorRoles,
  readSessions,
  readTimezone,
  readUploads,
} from './model/settings/settings.ts';
import { readStudio } from './model/settings/studio-settings.ts';
import { readTenantLayouts } from './model/tenant-layouts.ts';
import { readChecks } from './rules/checks.ts';
import { readConditions } from './rules/conditions.ts';
import { readNoOverlap } from './rules/no-overlap.ts';
import { readStatements } from './rules/prove-statements.ts';
import { withUniqueConditions } from './rules/unique-conditions.ts';
import { readWebhooks } from './rules/webhooks.ts';

export type { SchemaIssue } from './file/issue.ts';
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Loaded {
  /** The schema, if no issue is an error. */
  readonly schema?: Schema;
  /** The issues are in the order of the file. */
  readonly issues: readonly SchemaIssue[];
}

/** `file` is for messages only. */
export function parseSchema(text: string, file = 'bylaw.yaml', env: Environment = {}): Loaded {
  const source = new SourceText(text, file);
  const declared = readDeclarations(source);
  if (declared === undefined) return { issues: inFileOrder(source.issues) };
  const { shape, roles, catalog, broken } = declared;
  const settings = { report: source.report.bind(source), roles, env };
  const register = readRegister(shape, settings);
  const publicRoles = registeredRoles({ roles, register });
  const complete = [...declared.collections].map(([name, collection]) => {
    const reading = { source, catalog, broken, publicRoles };
    const access = readAccess(collection, shape.collections?.[name], reading);
    const restore = readRestore(collection, shape.collections?.[name], reading);
    const memberAccess = readMemberAccess(collection, shape.collections?.[name], reading);
    const members = withUniqueConditions(collection, shape.collections?.[name], reading);
    const checks = readChecks(collection, shape.collections?.[name], reading);
    const noOverlap = readNoOverlap(collection, shape.collections?.[name], reading);
    return [name, { ...collection, ...members, ...restore, ...noOverlap, access, memberAccess, checks }] as const;
  });
  const collections: Schema['collections'] = new Map(complete);
  if (!source.hasErrors) {
    const context = { source, shapes: shape.collections ?? {}, publicRoles };
    reportAdvice(collections, register, context);
    source.reportUnneededMarks();
  }
  const schema: Schema = {
    file,
    text,
    roles,
    register,
    guests: shape.guests === true,
    secondFactorRoles: readSecondFactorRoles(shape, settings),
    passkeys: readPasskeys(shape, settings),
    collections,
    oauth: readOAuth(shape, settings),
    sessions: readSessions(shape, settings),
    mail: readMail(shape, settings.report),
    audit: readAuditSettings(shape),
    limits: readLimits(shape, settings),
    uploads: readUploads(shape, settings),
    timezone: catalog.timezone,
    origins: readOrigins(shape, settings),
    cookie: readCookie(shape, settings),
    studio: readStudio(shape, settings),
    redirects: readRedirects(shape, settings),
    proxies: readProxies(shape, settings),
    statements: readStatements(shape, { source, catalog, broken }),
    seed: readSeed(shape),
    webhooks: readWebhooks(shape, { source, catalog, broken, collections, env }),
  };
  const issues = inFileOrder(source.issues);
  return issues.some(({ severity }) => severity === 'error') ? { issues } : { schema, issues };
}

/** Reports traps that a rule is by its place among the others. */
function reportAdvice(collections: Schema['collections'], register: Schema['register'], context: AdviceContext): void {
  checkRouting(collections, context);
  checkFeeds({ collections }, context.source.report.bind(context.source));
  warnOfPrivilegeEscalation(collections, context);
  warnOfPublicReferences(collections, context);
  warnOfSelfMadeEvidence(collections, context);
  warnOfGuessableValues(collections, context);
  warnOfRevealingChecks(collections, context);
  warnOfRacingRules(collections, context);
  warnOfClosedRegistration(collections, register, context);
}

/** The part of a schema that policies may know, before its own policies are read. */
export interface SchemaCatalog extends Catalog {
  readonly timezone: string;
  readonly collections: ReadonlyMap<string, Bare>;
}

/**
 * The names that policies may use, without looking at the policies. `catalog` is given where no
 * issue is an error.
 */
export function readSchemaCatalog(
  text: string,
  file = 'bylaw.yaml',
): { readonly catalog?: SchemaCatalog; readonly issues: readonly SchemaIssue[] } {
  const source = new SourceText(text, file);
  const catalog = readDeclarations(source)?.catalog;
  const issues = inFileOrder(source.issues);
  return issues.some(({ severity }) => severity === 'error') ? { issues } : { catalog, issues };
}

/** The collections, roles and conditions, before any policy is read. Undefined: the text is not YAML. */
function readDeclarations(source: SourceText) {
  const report = source.report.bind(source);
  const raw = source.value();
  if (raw === undefined) return undefined;
  if (isEmptyObject(raw)) report(NO_COLLECTIONS);
  const { file: shape, broken } = readShape(raw, report);
  const roles = readRoles(shape, report);
  const timezone = readTimezone(shape, report);
  const declared = declareCollections(shape, { report, broken, timezone });
  const collections = readTenantLayouts(declared, { file: shape, report, broken });
  const names = { collections, guests: shape.guests === true, roles: rolesOfPolicies(shape, roles, report), timezone };
  const conditions = readConditions(shape, { source, catalog: names });
  const catalog: SchemaCatalog = { ...names, conditions: conditions.conditions };
  return { shape, roles, collections, catalog, broken: new Set([...broken, ...conditions.broken]) };
}

const isEmptyObject = (raw: unknown): boolean =>
  typeof raw === 'object' && raw !== null && Object.keys(raw).length === 0;

const NO_COLLECTIONS: Finding = {
  code: 'no_collections',
  severity: 'warning',
  message:
    'the file declares nothing; declare collections under `collections`, such as `collections: { posts: { fields: { title: string } } }`',
  path: [],
};

function inFileOrder(issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  return issues.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
