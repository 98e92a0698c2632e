import { TallystickError } from '@tallystick/core'
import { option } from '@tallystick/core/kit'

/** What a caller can do to runs. */
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
 * Which runs a principal sees. Every list that is given must have the run's value, so a run without a session is not
 * seen by a principal with `sessions`. A child run is seen by those who see the run that it works for.
 */
export interface Scope {
  /** The agents that runs were started with. */
  readonly agents?: Names | undefined
  readonly sessions?: Names | undefined
  /** Whom runs are about: the option `subject` of a run. */
  readonly subjects?: Names | undefined
}

/** Who sends a request, and what it may see and do. */
export interface Principal {
  /** Recorded as `by` of every decision. */
  readonly name: string
  readonly sees: 'everything' | Scope
  /** What it may do to the runs that it sees; all of it if not given, and `[]` lets it only read. */
  readonly may?: readonly Permission[] | undefined
}

/**
 * Recognises the sender of a request, by a header or a cookie. `undefined` if it is unknown: the request is refused.
 * The request has no body.
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

/** Refuses what `authorize` answered, if it is no principal: a slip there must not open every run. */
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
