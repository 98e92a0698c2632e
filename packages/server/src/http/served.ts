import type { Agent, Runtime } from '@tallystick/core'
import type { ContextOfRecord } from '@tallystick/core/internal'
import type { StreamHost } from '../stream/followed-stream.ts'
import type { FollowedLedger } from '../stream/shared-reads.ts'
import type { SealedPlaces } from './cursors.ts'
import { includes, type Permission, type Principal } from './principal.ts'
import { RefusedRequestError } from './problem.ts'
import type { BodyLimits } from './request.ts'

/** What the routes of a server share. */
export interface Served extends FollowedLedger {
  readonly runtime: Runtime
  readonly agents: ReadonlyMap<string, Agent<unknown>>
  /** Makes what the application passes to a run, of what is on record of it. */
  readonly context: ContextOfRecord | undefined
  readonly body: BodyLimits
  readonly places: SealedPlaces
  readonly stream: StreamHost
  /** The response of a request has this path in front of those of the server. */
  readonly basePath: string
}

/** What Hono keeps with a request: who sent it. */
export interface RequestScope {
  readonly Variables: { readonly principal: Principal }
}

/** The largest page of a list. */
export const maxPage = 200

/** The longest page of events, in characters of JSON; an event that is longer is a page of its own. */
export const maxPageLength = 1_000_000

/** Refuses what the principal may not do. */
export function requirePermission({ may }: Principal, permission: Permission): void {
  if (may === undefined || may.includes(permission)) return
  throw new RefusedRequestError(
    403,
    'not_permitted',
    `You may read runs, but not ${permission} them. Ask the operator of this server for that permission.`,
  )
}

/** Returns the agent of a name that the principal sees. */
export function requireAgent({ agents }: Served, { sees }: Principal, name: string): Agent<unknown> {
  const agent = agents.get(name)
  if (agent && (sees === 'everything' || includes(sees.agents, name))) return agent
  throw new RefusedRequestError(
    404,
    'agent_not_found',
    `No agent ${name.slice(0, 80)} is served here. GET /agents lists those that are.`,
  )
}

/** A whole number of the query string; `undefined` if it is not given. */
export function numberParameter(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new RefusedRequestError(400, 'malformed', `${name} has to be a whole number.`)
}

/** How many entries a page of a list of runs holds, as its caller asks for it. */
export function pageSize(text: string | undefined): number {
  const limit = numberParameter('limit', text) ?? 50
  if (limit >= 1 && limit <= maxPage) return limit
  throw new RefusedRequestError(400, 'malformed', `limit has to be from 1 to ${maxPage}.`)
}

/** A JSON response, which no cache keeps. */
export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  })
}
