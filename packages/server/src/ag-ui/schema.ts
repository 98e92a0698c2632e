import * as z from 'zod'
import { digestOf, type UserPart } from '@tallystick/core/vocabulary'
import { busyDeliveries, type BusyDelivery } from '../conversation/say.ts'
import { malformed } from '../http/problem.ts'
import { createAgUiTable, type AgUiEvent, type AgUiMessage, type AgUiNames } from './map.ts'
import type { NamedDecision } from '../runs/commands.ts'
import type { RunProtocol } from '../stream/protocol.ts'

/** AG-UI 1.0 over server-sent events. */
export function createAgUiProtocol(names: AgUiNames): RunProtocol<AgUiEvent> {
  return {
    newTable: () => createAgUiTable(names),
    format: (event) => `data: ${JSON.stringify(event)}\n\n`,
    ending: '',
  }
}

/** An answer to an interrupt. */
interface ResumeEntry {
  readonly interruptId: string
  readonly status: 'resolved' | 'cancelled'
  readonly payload?: unknown
}

/** The part of a request that a server reads. Tools of the client are not called. */
export interface RunAgentInput {
  readonly threadId: string
  readonly runId: string
  readonly messages: readonly AgUiMessage[]
  readonly resume?: readonly ResumeEntry[] | undefined
  /** If a run is under way, the model reads the message at its next turn (`steer`) or after its answer (`queue`). */
  readonly forwardedProps?: { readonly whenBusy?: BusyDelivery | undefined } | undefined
}

const id = z.string().regex(/\S/, 'is empty').max(200)

/** Checks such an input. */
export const runAgentInput: z.ZodType<RunAgentInput> = z.looseObject({
  threadId: id,
  runId: id,
  messages: z.array(z.looseObject({ id: z.string(), role: z.string() })),
  resume: z
    .array(
      z.looseObject({
        interruptId: z.string(),
        status: z.enum(['resolved', 'cancelled']),
        payload: z.unknown().optional(),
      }),
    )
    .optional(),
  // Whatever else a client forwards is not read.
  forwardedProps: z
    .preprocess(
      (given) => (typeof given === 'object' && given !== null ? given : {}),
      z.looseObject({ whenBusy: z.enum(busyDeliveries).optional() }),
    )
    .optional(),
})

/** Returns the key under which a run of the client takes effect once. */
export function toRunKey({ threadId, runId }: RunAgentInput): string {
  return `ag-ui:${digestOf(['run of AG-UI', threadId, runId])}`
}

/** Returns what the user says in the last message. */
export function readUserInput(messages: readonly AgUiMessage[]): readonly UserPart[] {
  const last = messages.at(-1)
  const content = last?.role === 'user' ? last['content'] : undefined
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const texts = Array.isArray(parts) ? parts.flatMap(readTextPart) : []
  if (texts.length > 0) return texts
  throw malformed('The last message has to be one of the user, with a text.')
}

function readTextPart(part: unknown): readonly UserPart[] {
  const { type, text } = Object(part) as { readonly type?: unknown; readonly text?: unknown }
  return type === 'text' && typeof text === 'string' && text !== '' ? [{ type, text }] : []
}

const payload = z.looseObject({
  approved: z.boolean(),
  reason: z.string().optional(),
  input: z.record(z.string(), z.json()).optional(),
})

/** Returns the decision in an answer to an interrupt. A cancelled interrupt counts as a denial. */
export function readDecision({
  interruptId: approvalId,
  status,
  payload: given,
}: ResumeEntry): NamedDecision {
  if (status === 'cancelled') return { approvalId, approved: false, reason: 'The question was given up.' }
  const parsed = payload.safeParse(given)
  if (!parsed.success) {
    throw malformed('The payload of a resume entry has to say { approved: true } or false.')
  }
  const { approved, reason = 'Denied.', input } = parsed.data
  return { approvalId, approved, reason, ...(input && { input }) }
}
