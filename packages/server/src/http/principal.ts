import { type Ledger, type RunId, TallystickError } from '@tallystick/core'
import { isSameSecret, omitUndefined, option, readStart } from '@tallystick/core/internal'
import { computeDigest, type EventOf, parseRunId } from '@tallystick/core/vocabulary'
import { encodeBase64Url } from 'hono/utils/encode'
import { createMalformedError, createRunNotFoundError } from './problem.ts'

/** Permissions on runs. */
export const permissions = [
  'start',
  'approve',
  'deny',
  'withdraw',
  'cancel',
  'steer',
  'queue',
  'raise',
  'settle',
  'feedback',
  'resume',
  'fork',
  'schedule',
  'signal',
  'replay',
  'inspect',
  'drive',
] as const
export type Permission = (typeof permissions)[number]

/** Names, or a function that decides about a name. */
export type Names = readonly string[] | ((name: string) => boolean)

/**
 * Which runs a principal sees: those that match every given list. So a run without a session is not visible to a
 * principal with `sessions`. A child run is visible to those who see its parent.
 */
export interface Scope {
  /** The agents that runs were started with. */
  readonly agents?: Names | undefined
  readonly sessions?: Names | undefined
  /** The subjects of runs: their option `subject`. */
  readonly subjects?: Names | undefined
}

/** The caller of a request, and what it may see and do. */
export interface Principal {
  /** Recorded as `by` of every decision. */
  readonly name: string
  readonly sees: 'everything' | Scope
  /** Recorded with every decision: a call may need an approver with one of some roles. */
  readonly roles?: readonly string[] | undefined
  /**
   * The permissions on the runs that it sees; with `[]` it may only read. Default: all but `drive`, for engines and crons, and
   * but `replay` and `inspect` for a caller that does not see everything. Who sees everything may always `inspect`: that
   * reads what `outputStream` did not show, too.
   */
  readonly may?: readonly Permission[] | undefined
}

/**
 * Identifies the caller of a request, by a header or a cookie. Returns `undefined` for an unknown caller: the request
 * is refused. The function gets the request without its body.
 */
export type Authorize = (request: Request) => Principal | undefined | Promise<Principal | undefined>

const { anyText, fields, filledText, listOf, maybe, oneOf, plainFunction } = option

const names = maybe((value) => (typeof value === 'function' ? plainFunction(value) : listOf(anyText)(value)))
const scope = fields<Scope>({ agents: names, sessions: names, subjects: names })
const principal = fields<Principal>({
  name: filledText,
  sees: (value) => (value === 'everything' ? undefined : scope(value)),
  roles: maybe(listOf(filledText)),
  may: maybe(listOf(oneOf(permissions))),
})

/** Refuses an answer of `authorize` that is not a principal, so that a mistake there does not open every run. */
export function requirePrincipal(given: Principal): void {
  const fault = principal(given)
  let what = fault && `${fault.path || 'what it returned'} ${fault.what}`
  const { sees } = Object(given) as Principal
  if (!fault && sees !== 'everything' && !sees.agents && !sees.sessions && !sees.subjects) {
    what = "sees names no agents, sessions or subjects. Name some, or say 'everything'"
  }
  // A fault of the application that the caller cannot mend: its message goes to the operator.
  if (what !== undefined) throw new TallystickError('no_principal', `authorize: ${what}.`)
}

/** Without names, every name is included. */
export function isIncluded(names: Names | undefined, name: string | undefined): boolean {
  if (names === undefined) return true
  if (name === undefined) return false
  return typeof names === 'function' ? names(name) : names.includes(name)
}

/** A token that cannot be guessed, for a server without `authorize`. */
export function createToken(): string {
  return encodeBase64Url(crypto.getRandomValues(new Uint8Array(24)).buffer)
}

/** Identifies a request with the token as one of the person who started the server. */
export function authorizeToken(token: string): Authorize {
  const expected = `Bearer ${token}`
  return (request) =>
    isSameSecret(request.headers.get('authorization') ?? '', expected)
      ? { name: 'operator', sees: 'everything' }
      : undefined
}

/**
 * Identifies a caller by its name and its subjects, since two tenants may each have an Ann Smith. Sessions and agents are
 * left out: a session that it has just begun must not make it another caller.
 */
export function toCallerId({ name, sees }: Principal): string {
  const subjects = sees === 'everything' ? undefined : sees.subjects
  const listed = subjects === undefined || typeof subjects === 'function' ? null : [...subjects].sort()
  return computeDigest([name, listed])
}

/** Returns the key under which a request takes effect once. Keys of different callers never collide. */
export function toCallerKey(principal: Principal, given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  if (/^[\x21-\x7e]{1,200}$/.test(given)) return `http:${toCallerId(principal)}:${given}`
  throw createMalformedError('Idempotency-Key has to be 1 to 200 visible ASCII characters, without a space.')
}

/** Headers of a request that starts a run. */
export interface StartHeaders {
  /** The request takes effect once under it. */
  readonly idempotencyKey?: string
  /** The caller's place in a trace, which the run continues: a `traceparent` of W3C Trace Context. */
  readonly traceId?: string
}

/** Reads the headers of a request that starts a run. A malformed `traceparent` is ignored, as its specification says. */
export function readStartHeaders({ headers }: Request, principal: Principal): StartHeaders {
  const given = headers.get('traceparent') ?? ''
  return omitUndefined({
    idempotencyKey: toCallerKey(principal, headers.get('idempotency-key') ?? undefined),
    traceId: /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(given) ? given : undefined,
  })
}

/** Facts that decide who sees a run. */
export interface RunFacts {
  readonly agent: string
  readonly sessionId?: string | undefined
  readonly subject?: string | undefined
}

export function canSee({ sees: scope }: Principal, { agent, sessionId, subject }: RunFacts): boolean {
  if (scope === 'everything') return true
  return (
    isIncluded(scope.agents, agent) &&
    isIncluded(scope.sessions, sessionId) &&
    isIncluded(scope.subjects, subject)
  )
}

/** Returns the id of a run that the principal sees. For any other run it throws as if the run did not exist. */
export async function requireVisible(ledger: Ledger, principal: Principal, text: string): Promise<RunId> {
  const runId = parseRunId(text)
  if (runId === undefined) throw createRunNotFoundError(text)
  if (!(await isVisible(ledger, principal, runId))) throw createRunNotFoundError(text)
  return runId
}

/** Returns `false` for a run that the principal does not see, or that does not exist. */
export async function isVisible(ledger: Ledger, principal: Principal, runId: RunId): Promise<boolean> {
  const first = await readRootStart(ledger, runId)
  return first !== undefined && canSee(principal, first)
}

/** Reads the first event of a run's root: the topmost parent of a child run, else the run itself. */
export async function readRootStart(
  ledger: Ledger,
  runId: RunId,
): Promise<EventOf<'run_started'> | undefined> {
  for (let id = runId; ;) {
    const first = await readStart(ledger, id)
    if (first?.parent?.relation !== 'child') return first
    id = first.parent.runId
  }
}

export async function findLastRun(ledger: Ledger, sessionId: string): Promise<RunId | undefined> {
  for await (const { runId } of ledger.runs({ sessionId, limit: 1 })) return runId
  return undefined
}
