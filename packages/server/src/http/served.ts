import type { Agent, Run, RunId, Runtime } from '@tallystick/core'
import type { ContextOfRecord } from '@tallystick/core/internal'
import type { VerifyCheckpointsOptions } from '@tallystick/ledger'
import type { FollowedLedger } from '../stream/shared-reads.ts'
import type { SealedPlaces } from './cursors.ts'
import { isIncluded, type Permission, type Principal } from './principal.ts'
import { createMalformedError, RefusedRequestError } from './problem.ts'
import type { BodyLimits } from './request.ts'

export interface Served extends FollowedLedger {
  readonly runtime: Runtime
  readonly agents: ReadonlyMap<string, Agent<unknown>>
  /** Makes the context of a run from what is on record of it. */
  readonly context: ContextOfRecord | undefined
  readonly body: BodyLimits
  /** What signed checkpoints are read from. */
  readonly checkpoints: VerifyCheckpointsOptions | undefined
  readonly places: SealedPlaces
  /** The runs that this process drives for requests; set if readers of events get text before it is on record. */
  readonly liveRuns: Map<RunId, Run> | undefined
  /** Wakes a run for the workers that drive it; absent where this process drives the runs of its requests. */
  readonly wake: ((runId: RunId) => Promise<void>) | undefined
  /** The path before those of the server. */
  readonly basePath: string
}

export interface RequestScope {
  readonly Variables: { readonly principal: Principal }
}

/** The largest page of a list. */
export const maxPage = 200

/** The longest page of events, in characters of JSON; a longer event is a page of its own. */
export const maxPageLength = 1_000_000

/** Permissions that nobody has who was not named for it, or does not see everything. */
const isNamed: Partial<Record<Permission, 'always' | 'unless all is seen'>> = {
  // Whoever may drive starts runs of any kind.
  drive: 'always',
  replay: 'unless all is seen',
  inspect: 'unless all is seen',
}

/** Returns whether a principal has a permission. */
export function isPermitted({ may, sees }: Principal, permission: Permission): boolean {
  if (permission === 'inspect' && sees === 'everything') return true
  const named = isNamed[permission]
  return may?.includes(permission) ?? (named === undefined || (named !== 'always' && sees === 'everything'))
}

export function requirePermission(principal: Principal, permission: Permission): void {
  if (isPermitted(principal, permission)) return
  throw new RefusedRequestError(
    403,
    'not_permitted',
    `You may read runs, but not ${permission} them. Ask the operator of this server for that permission.`,
  )
}

/** Refuses what needs a process that drives runs, where the server leaves that to workers. */
export function requireDriving({ wake }: Served, what: string): void {
  if (wake === undefined) return
  throw new RefusedRequestError(
    409,
    'not_driven_here',
    `This server leaves the driving of runs to workers, so it cannot ${what}. Ask a process that drives runs.`,
  )
}

/** The subjects that a principal sees, if they are a list: what it sees is about one of them. */
export function listSubjects({ sees }: Principal): readonly string[] | undefined {
  return sees === 'everything' || typeof sees.subjects === 'function' ? undefined : sees.subjects
}

/** The agents that the principal sees. */
export function listAgents({ agents }: Served, { sees }: Principal): readonly Agent<unknown>[] {
  return [...agents.values()].filter(({ name }) => sees === 'everything' || isIncluded(sees.agents, name))
}

/** Finds an agent that the principal sees. */
export function requireAgent(served: Served, principal: Principal, name: string): Agent<unknown> {
  const agent = listAgents(served, principal).find((each) => each.name === name)
  if (agent) return agent
  throw new RefusedRequestError(
    404,
    'agent_not_found',
    `No agent ${name.slice(0, 80)} is served here. GET /agents lists those that are.`,
  )
}

export function parseNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw createMalformedError(`${name} has to be a whole number.`)
}

export function parsePageSize(text: string | undefined): number {
  const limit = parseNumber('limit', text) ?? 50
  if (limit >= 1 && limit <= maxPage) return limit
  throw createMalformedError(`limit has to be from 1 to ${maxPage}.`)
}

/** A JSON response that no cache keeps.  */
export function respondJson(
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  })
}
