import { TallystickError } from '@tallystick/core'
import { option } from '@tallystick/core/kit'

/** What a principal may do with runs. */
export const permissions = [
  'start',
  'approve',
  'deny',
  'cancel',
  'steer',
  'queue',
  'raise',
  'settle',
  'resume',
  'fork',
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
  /** The permissions on the runs that it sees. Default: all; with `[]` it may only read. */
  readonly may?: readonly Permission[] | undefined
}

/**
 * Identifies the caller of a request, by a header or a cookie. Returns `undefined` for an unknown caller: the request
 * is refused. The function gets the request without its body.
 */
export type Authorize = (request: Request) => Principal | undefined | Promise<Principal | undefined>

const { anyText, fields, filledText, listOf, maybe, oneOf, plainFunction } = option

const names = maybe((value, path) =>
  typeof value === 'function' ? plainFunction(value, path) : listOf(anyText)(value, path),
)
const scope = fields<Scope>({ agents: names, sessions: names, subjects: names })
const principal = fields<Principal>({
  name: filledText,
  sees: (value, path) => (value === 'everything' ? undefined : scope(value, path)),
  may: maybe(listOf(oneOf(permissions))),
})

/** Refuses an answer of `authorize` that is not a principal, so that a mistake there does not open every run. */
export function requirePrincipal(given: Principal): void {
  const fault = principal(given, '')
  if (fault) throw noPrincipal(`${fault.path || 'what it returned'} ${fault.what}`)
  const { sees } = given
  if (sees === 'everything' || sees.agents || sees.sessions || sees.subjects) return
  throw noPrincipal("sees names no agents, sessions or subjects. Name some, or say 'everything'")
}

/** A fault of the application, which the caller cannot mend: its message goes to the operator. */
function noPrincipal(what: string): TallystickError {
  return new TallystickError('no_principal', `authorize: ${what}.`)
}

/** Whether names include a name. */
export function includes(names: Names | undefined, name: string | undefined): boolean {
  if (names === undefined) return true
  if (name === undefined) return false
  return typeof names === 'function' ? names(name) : names.includes(name)
}
