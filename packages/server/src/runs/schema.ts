import { resultPartSchema, userPartSchema } from '@tallystick/core/schemas'
import { forkWrites, onLimits } from '@tallystick/core/internal'
import {
  type ForkWrites,
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

/** Approves a call. It names the question that it answers; `input` replaces the call's input. */
export interface ApproveBody {
  readonly toolCallId: string
  readonly attempt?: number
  readonly inputDigest?: string
  readonly input?: JsonObject
}

/** Denies a call; the model reads the reason. */
export interface DenyBody {
  readonly toolCallId: string
  readonly attempt?: number
  readonly inputDigest?: string
  readonly reason: string
}

/** Stops a run. */
export interface CancelBody {
  readonly reason?: string
}

/** Adds a message to a run. */
export interface InputBody {
  readonly input: Input
}

/** Raises a limit. */
export interface RaiseBody {
  readonly limit: LimitName
  readonly max: number
}

/** Settles a deferred call, with its result or with what went wrong. */
export type SettleBody =
  | { readonly toolCallId: string; readonly result: string | readonly ResultPart[] }
  | { readonly toolCallId: string; readonly failed: string }

/** Resumes a run; with `takeOver` also if the ledger cannot tell whether a process drives it. */
export interface ResumeBody {
  readonly takeOver?: boolean
}

/** Forks a run after an event; `input` replaces the user's last message. */
export interface ForkBody {
  readonly atSeq: number
  readonly input?: Input
  readonly writes?: ForkWrites
  readonly sessionId?: string
  readonly reason?: string
}

const filled = z.string().regex(/\S/, 'is empty')
const id = filled.max(200)
/** An adapter passes a URL on, so that one of `file:` or `javascript:` would be another's to open. */
const isWebUrl = (part: UserPart | ResultPart): boolean =>
  !('url' in part) || part.url === undefined || /^https?:\/\//.test(part.url)
const webUrl = { path: ['url'], error: 'can only be a URL of http or https; give other content as data' }
const input = z.union([filled, z.array(userPartSchema.refine(isWebUrl, webUrl)).min(1)])
const result = z.union([z.string(), z.array(resultPartSchema.refine(isWebUrl, webUrl)).min(1)])
const amount = z.number().nonnegative()
const question = {
  toolCallId: id,
  attempt: z.exactOptional(z.int().positive()),
  inputDigest: z.exactOptional(id),
}
const limits = z.strictObject({
  ...Object.fromEntries(limitNames.map((name) => [name, z.exactOptional(amount)])),
  onLimit: z.exactOptional(z.enum(onLimits)),
})

/** Checks of the bodies. They refuse unknown fields, which would have no effect. */
export const startBody: z.ZodType<StartBody> = z.strictObject({
  agent: id,
  input,
  sessionId: z.exactOptional(id),
  whenBusy: z.exactOptional(z.enum(['conflict', 'wait'])),
  subject: z.exactOptional(id),
  from: z.exactOptional(z.strictObject({ runId: id, atSeq: z.exactOptional(z.int().positive()) })),
  tags: z.exactOptional(z.array(id).max(50)),
  metadata: z.exactOptional(z.record(z.string(), z.json())),
  deadline: z.exactOptional(z.int().positive()),
  limits: z.exactOptional(limits),
})
export const approveBody: z.ZodType<ApproveBody> = z.strictObject({
  ...question,
  input: z.exactOptional(z.record(z.string(), z.json())),
})
export const denyBody: z.ZodType<DenyBody> = z.strictObject({ ...question, reason: z.string() })
export const cancelBody: z.ZodType<CancelBody> = z.strictObject({ reason: z.exactOptional(z.string()) })
export const inputBody: z.ZodType<InputBody> = z.strictObject({ input })
export const raiseBody: z.ZodType<RaiseBody> = z.strictObject({ limit: z.enum(limitNames), max: amount })
export const settleBody: z.ZodType<SettleBody> = z.union([
  z.strictObject({ toolCallId: id, result }),
  z.strictObject({ toolCallId: id, failed: z.string() }),
])
export const resumeBody: z.ZodType<ResumeBody> = z.strictObject({ takeOver: z.exactOptional(z.boolean()) })
export const forkBody: z.ZodType<ForkBody> = z.strictObject({
  atSeq: z.int().positive(),
  input: z.exactOptional(input),
  writes: z.exactOptional(z.enum(forkWrites)),
  sessionId: z.exactOptional(id),
  reason: z.exactOptional(z.string()),
})
