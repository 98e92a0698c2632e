import { resultPartSchema, userPartSchema } from '@tallystick/core/schemas'
import { missedPolicies, onLimits } from '@tallystick/core/internal'
import {
  type JsonObject,
  type LimitName,
  limitNames,
  type OnLimit,
  type ResultPart,
  type UserPart,
} from '@tallystick/core/vocabulary'
import * as z from 'zod'

/** The message of a user: a text, or parts. */
export type Input = string | readonly UserPart[]

/** Starts a run. */
export interface StartBody {
  readonly agent: string
  readonly input: Input
  readonly sessionId?: string
  readonly whenBusy?: 'conflict' | 'wait'
  /** The subject of the run, under a name that does not reveal who it is. */
  readonly subject?: string
  /** Begins with the history of another run, up to an event. */
  readonly from?: { readonly runId: string; readonly atSeq?: number }
  readonly tags?: readonly string[]
  readonly metadata?: JsonObject
  /** When the run ends at the latest, in milliseconds since 1970 UTC. */
  readonly deadline?: number
  /** Limits of this run, within those of the agent. */
  readonly limits?: { readonly [Name in LimitName]?: number } & { readonly onLimit?: OnLimit }
}

const filled = z.string().regex(/\S/, 'is empty')
/** An id that a caller gives. */
export const id: z.ZodType<string> = filled.max(200)
/** An adapter passes a URL on, so that one of `file:` or `javascript:` would be another's to open. */
export const isWebUrl = (part: UserPart | ResultPart): boolean =>
  !('url' in part) || part.url === undefined || /^https?:\/\//.test(part.url)
export const webUrl: { path: string[]; error: string } = {
  path: ['url'],
  error: 'can only be a URL of http or https; give other content as data',
}
/** Checks the message of a user. */
export const input: z.ZodType<Input> = z.union([
  filled,
  z.array(userPartSchema.refine(isWebUrl, webUrl)).min(1),
])
/** Checks the result of a call. */
export const result: z.ZodType<string | readonly ResultPart[]> = z.union([
  z.string(),
  z.array(resultPartSchema.refine(isWebUrl, webUrl)).min(1),
])
const limits = z.strictObject({
  ...Object.fromEntries(limitNames.map((name) => [name, z.exactOptional(z.number().nonnegative())])),
  onLimit: z.exactOptional(z.enum(onLimits)),
})

/** What a run and a schedule are started with. */
const started = {
  agent: id,
  input,
  subject: z.exactOptional(id),
  tags: z.exactOptional(z.array(id).max(50)),
  metadata: z.exactOptional(z.record(z.string(), z.json())),
  limits: z.exactOptional(limits),
}

/** Checks such a body. It refuses unknown fields, which would have no effect. */
export const startBody: z.ZodType<StartBody> = z.strictObject({
  ...started,
  sessionId: z.exactOptional(id),
  whenBusy: z.exactOptional(z.enum(['conflict', 'wait'])),
  from: z.exactOptional(z.strictObject({ runId: id, atSeq: z.exactOptional(z.int().positive()) })),
  deadline: z.exactOptional(z.int().positive()),
})

/** Starts runs by time: one of `cron`, `at` and `every` says when. Times are in milliseconds, `at` since 1970 UTC. */
export interface ScheduleBody extends Pick<
  StartBody,
  'agent' | 'input' | 'subject' | 'tags' | 'metadata' | 'limits'
> {
  readonly name?: string
  readonly cron?: string
  readonly timeZone?: string
  readonly at?: number
  readonly every?: number
  readonly missed?: (typeof missedPolicies)[number]
}

/** Checks such a body. */
export const scheduleBody: z.ZodType<ScheduleBody> = z.strictObject({
  ...started,
  name: z.exactOptional(id),
  cron: z.exactOptional(id),
  timeZone: z.exactOptional(id),
  at: z.exactOptional(z.int().positive()),
  every: z.exactOptional(z.int().min(1_000)),
  missed: z.exactOptional(z.enum(missedPolicies)),
})
