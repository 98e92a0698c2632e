import type { CommandAcknowledgement, Ledger, RunId } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, OutsideCommand } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import type * as z from 'zod'
import { callerKey, type Principal, requireVisible } from '../http/principal.ts'
import { RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { json, type RequestScope, requirePermission, type Served } from '../http/served.ts'
import { questionOf } from '../stream/run-moves.ts'
import {
  approveBody,
  cancelBody,
  denyBody,
  type Input,
  inputBody,
  raiseBody,
  resumeBody,
  settleBody,
} from './schema.ts'
import { firstEvent } from './start.ts'
import { stateAt, statusOf } from './view.ts'

/** Who sends a command, and the id of the input that it carries. */
export interface Sender {
  readonly by: string
  readonly newId: () => string
}

/** A command that was read from a body, as its sender completes it. */
type ReadCommand = (sender: Sender) => OutsideCommand

/** A command that a caller sends: the check of its body, and the body as a command of a sender. */
interface CommandKind {
  readonly body: z.ZodType
  readonly read: z.ZodType<ReadCommand>
}

function kindOf<Body>(
  body: z.ZodType<Body>,
  commandOf: (body: Body, sender: Sender) => OutsideCommand,
): CommandKind {
  const read = body.transform(
    (given): ReadCommand =>
      (sender) =>
        commandOf(given, sender),
  )
  return { body, read }
}

/** The commands that a caller sends to a run. */
export const commandNames = ['approve', 'deny', 'cancel', 'steer', 'queue', 'raise', 'settle'] as const
export type CommandName = (typeof commandNames)[number]

/** The commands of a caller, by the last part of their path. `by` is the principal: no body says who decides. */
export const commandKinds: Readonly<Record<CommandName, CommandKind>> = {
  approve: kindOf(approveBody, (body, { by }) => ({ type: 'approve', ...body, by, via: 'http' })),
  deny: kindOf(denyBody, (body, { by }) => ({ type: 'deny', ...body, by, via: 'http' })),
  cancel: kindOf(cancelBody, (body, { by }) => ({ type: 'cancel', ...body, by })),
  steer: kindOf(inputBody, (body, { newId }) => ({
    type: 'steer',
    message: messageOf(body.input),
    receipt: newId(),
  })),
  queue: kindOf(inputBody, (body, { newId }) => ({
    type: 'queue',
    message: messageOf(body.input),
    receipt: newId(),
  })),
  raise: kindOf(raiseBody, (body, { by }) => ({ type: 'raise_limit', ...body, by })),
  settle: kindOf(settleBody, ({ toolCallId, ...end }) =>
    'failed' in end
      ? { type: 'settle', toolCallId, outcome: 'failed', content: textParts(end.failed) }
      : {
          type: 'settle',
          toolCallId,
          outcome: 'success',
          content: typeof end.result === 'string' ? textParts(end.result) : end.result,
        },
  ),
}

function messageOf(given: Input): Extract<OutsideCommand, { type: 'steer' }>['message'] {
  return { role: 'user', parts: typeof given === 'string' ? textParts(given) : given }
}

function textParts(text: string): readonly { readonly type: 'text'; readonly text: string }[] {
  return [{ type: 'text', text }]
}

/**
 * Adds the routes of commands. A command goes to the process that drives the run; if no process does, this one takes
 * the run over.
 */
export function addCommands(app: Hono<RequestScope>, served: Served): void {
  for (const name of commandNames) addCommand(app, served, name)
  app.post('/runs/:run/resume', async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, 'resume')
    const runId = await requireVisible(served.ledger, principal, context.req.param('run'))
    const { takeOver = false } = await readBody(context.req.raw, resumeBody, served.body)
    await requireResumable(served.ledger, runId, takeOver)
    await resume(served, runId, takeOver)
    return json({ accepted: true }, 202)
  })
}

function addCommand(app: Hono<RequestScope>, served: Served, name: CommandName): void {
  app.post(`/runs/:run/${name}`, async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, name)
    const runId = await requireVisible(served.ledger, principal, context.req.param('run') ?? '')
    const sent = await readBody(context.req.raw, commandKinds[name].read, served.body)
    const key = callerKey(principal, context.req.header('idempotency-key'))
    const command = sent({ by: principal.name, newId: () => key ?? crypto.randomUUID() })
    const own = { key, context: served.context }
    return acknowledged(await served.runtime.send(runId, command, own))
  })
}

function acknowledged(acknowledgement: CommandAcknowledgement): Response {
  if (acknowledgement.accepted) return json({ accepted: true })
  const { code, message } = acknowledgement
  throw new RefusedRequestError(code === 'malformed' ? 400 : 409, code, message)
}

async function requireResumable(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<void> {
  const status = await statusOf(ledger, await stateAt(ledger, runId))
  if (status === 'done')
    throw notResumable('run_finished', 'The run has ended. Start a run of its session, or fork it.')
  if (status !== 'under_way' || takeOver) return
  throw notResumable(
    'under_way',
    'A process drives the run: follow its events. If it died on another machine, its lease ends within seconds; {"takeOver":true} does not wait for that, and what a process that lives has under way may then happen twice.',
  )
}

function notResumable(code: string, message: string): RefusedRequestError {
  return new RefusedRequestError(409, code, message)
}

/** Resolves when the resume is on record, or the run has stopped. */
async function resume(served: Served, runId: RunId, takeOver: boolean): Promise<void> {
  const { seq } = (await served.ledger.head(runId)) ?? { seq: 0 }
  const run = served.runtime.resume(runId, { context: served.context, takeOver })
  await Promise.race([firstEvent(run, seq, served.stream.report), run.result])
}

/** A decision about a call as a chat has it, with the id of the question. */
export interface NamedDecision {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason: string
  readonly input?: JsonObject
}

/** Sends a decision to its run. Throws a problem if the run refuses it. */
export async function sendDecision(
  { runtime, context }: Served,
  principal: Principal,
  runId: RunId,
  { approvalId, approved, reason, input }: NamedDecision,
): Promise<void> {
  requirePermission(principal, approved ? 'approve' : 'deny')
  const question = questionOf(approvalId)
  if (question === undefined) {
    throw new RefusedRequestError(
      400,
      'malformed',
      'The approval has no id of this server. Send the id under which the approval was asked for.',
    )
  }
  const named = { ...question, by: principal.name, via: 'chat' } as const
  const command = approved
    ? ({ type: 'approve', ...named, ...omitUndefined({ input }) } as const)
    : ({ type: 'deny', ...named, reason } as const)
  const answer = await runtime.send(runId, command, { context })
  if (!answer.accepted) throw new RefusedRequestError(409, answer.code, answer.message)
}
