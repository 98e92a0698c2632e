import {
  type CommandAcknowledgement,
  ConfigurationError,
  type Ledger,
  LedgerConflictError,
  type RunId,
} from '@tallystick/core'
import { findOpenRoot, findSentBefore, isDescendantOf, omitUndefined } from '@tallystick/core/internal'
import { decide } from '@tallystick/core/machine'
import { extractRunId, type JsonObject, limitNames, type OutsideCommand } from '@tallystick/core/vocabulary'
import { concatMap, filter, firstValueFrom, startWith } from 'rxjs'
import * as z from 'zod'
import { toCallerKey, type Permission, type Principal } from '../http/principal.ts'
import { createMalformedError, RefusedRequestError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { respondJson, requireDriving, requirePermission, type Served } from '../http/served.ts'
import type { FollowedRun } from '../stream/protocol.ts'
import { parseApprovalId } from '../stream/run-moves.ts'
import { id, input, result } from './schema.ts'
import { awaitFirstEvent } from './start.ts'
import { readState, readStatus } from './view.ts'

/** A command that a caller may send. */
interface CommandRoute<Body> {
  /** Also the last part of the path. */
  readonly permission: Permission
  readonly summary: string
  readonly example: JsonObject
  /** No body says who decides: `by` is the principal. */
  readonly body: z.ZodType<Body>
  /** `receipt` is the id of the input that the command carries. */
  toCommand(body: Body, sender: { readonly by: string; readonly receipt: string }): OutsideCommand
}

/** Keeps the type of the body between its schema and `toCommand`. */
function commandRoute<Body>(route: CommandRoute<Body>): CommandRoute<unknown> {
  return route
}

/** The question that a decision answers. */
const question = {
  toolCallId: id,
  attempt: z.exactOptional(z.int().positive()),
  inputDigest: z.exactOptional(id),
}

const call = { toolCallId: 'call_0190a0d204d472fd99e77861fc19641d_1_1_0' }

/** The route of each command, and the permission that it takes, whichever route sends it. */
const commandRoutes: { readonly [T in OutsideCommand['type']]: CommandRoute<unknown> } = {
  approve: commandRoute({
    permission: 'approve',
    summary: 'Approves a call that waits for a person.',
    example: call,
    // `input` replaces the input of the call.
    body: z.strictObject({
      ...question,
      input: z.exactOptional(z.record(z.string(), z.json())),
      reason: z.exactOptional(z.string()),
      // The approval also covers later calls of the tool: all of the session, or those with an equal input.
      standing: z.exactOptional(
        z.strictObject({ for: z.enum(['session', 'equal_input']), expiresInMs: z.number().positive() }),
      ),
    }),
    toCommand: (body, { by }) => ({ type: 'approve', ...body, by, via: 'http' }),
  }),
  deny: commandRoute({
    permission: 'deny',
    summary: 'Denies a call that waits for a person; the model reads why.',
    example: { ...call, reason: 'Too dear.' },
    body: z.strictObject({ ...question, reason: z.string() }),
    toCommand: (body, { by }) => ({ type: 'deny', ...body, by, via: 'http' }),
  }),
  withdraw: commandRoute({
    permission: 'withdraw',
    summary: 'Ends a standing approval, which is known by the call that was approved.',
    example: { standing: call.toolCallId, reason: 'The bill was wrong.' },
    body: z.strictObject({ standing: id, reason: z.exactOptional(z.string()) }),
    toCommand: (body, { by }) => ({ type: 'withdraw', ...body, by }),
  }),
  cancel: commandRoute({
    permission: 'cancel',
    summary: 'Stops a run.',
    example: { reason: 'Not needed any more.' },
    body: z.strictObject({ reason: z.exactOptional(z.string()) }),
    toCommand: (body, { by }) => ({ type: 'cancel', ...body, by }),
  }),
  steer: commandRoute({
    permission: 'steer',
    summary: 'Adds a message at the next turn.',
    example: { input: 'Pay in euros.' },
    body: z.strictObject({ input }),
    toCommand: (body, { receipt }) => ({
      type: 'steer',
      message: { role: 'user', parts: toParts(body.input) },
      receipt,
    }),
  }),
  queue: commandRoute({
    permission: 'queue',
    summary: 'Adds a message after the answer.',
    example: { input: 'Then write a receipt.' },
    body: z.strictObject({ input }),
    toCommand: (body, { receipt }) => ({
      type: 'queue',
      message: { role: 'user', parts: toParts(body.input) },
      receipt,
    }),
  }),
  raise_limit: commandRoute({
    permission: 'raise',
    summary: 'Raises a limit of a run.',
    example: { limit: 'maxTurns', max: 100 },
    body: z.strictObject({ limit: z.enum(limitNames), max: z.number().nonnegative() }),
    toCommand: (body, { by }) => ({ type: 'raise_limit', ...body, by }),
  }),
  set_schedule: commandRoute({
    permission: 'schedule',
    summary: 'Pauses a schedule, or lets it go on with its next time.',
    example: { paused: true, reason: 'Holiday.' },
    body: z.strictObject({ paused: z.boolean(), reason: z.exactOptional(z.string()) }),
    toCommand: (body, { by }) => ({ type: 'set_schedule', ...body, by }),
  }),
  settle: commandRoute({
    permission: 'settle',
    summary: 'Settles a deferred call.',
    example: { ...call, result: '5 USD paid' },
    body: z.union([
      z.strictObject({ toolCallId: id, result }),
      z.strictObject({ toolCallId: id, failed: z.string() }),
    ]),
    toCommand: ({ toolCallId, ...end }) =>
      'failed' in end
        ? { type: 'settle', toolCallId, outcome: 'failed', content: toParts(end.failed) }
        : { type: 'settle', toolCallId, outcome: 'success', content: toParts(end.result) },
  }),
}

const feedback = z
  .strictObject({ score: z.exactOptional(z.number()), note: z.exactOptional(z.string()) })
  .refine(({ score, note }) => score !== undefined || note !== undefined, 'needs a score, a note, or both')

/**
 * Adds the routes of commands, `feedback` and `resume`. A command goes to the process that drives the run; if there is none, this
 * process takes the run over, or wakes it for the workers that drive.
 */
export function addCommands(routes: Routes): void {
  const { served } = routes
  const { ledger, runtime } = served
  for (const route of Object.values(commandRoutes)) {
    const { permission, summary, example, body } = route
    routes.post(
      `/runs/:run/${permission}`,
      {
        operationId: `${permission}Run`,
        summary,
        parameters: ['Idempotency-Key'],
        body: { name: `${permission[0]?.toUpperCase()}${permission.slice(1)}`, schema: body, example },
        answers: { 200: 'The run has taken the command.' },
        fields: ['accepted'],
      },
      async ({ principal, runId, req, readBody }) => {
        const given = await readBody()
        const key = toCallerKey(principal, req.header('idempotency-key'))
        const command = route.toCommand(given, { by: principal.name, receipt: key ?? crypto.randomUUID() })
        await sendCommand(served, principal, runId, command, key)
        return respondJson({ accepted: true })
      },
    )
  }
  routes.post(
    '/runs/:run/feedback',
    {
      operationId: 'giveFeedback',
      summary: 'Records what the caller says of a run that has ended: a score, a note, or both.',
      permission: 'feedback',
      parameters: ['Idempotency-Key'],
      body: { name: 'Feedback', schema: feedback, example: { score: 1, note: 'Right, and short.' } },
      answers: { 200: 'The feedback is on record.' },
      fields: ['accepted'],
    },
    async ({ principal, runId, req, readBody }) => {
      const given = { ...(await readBody()), by: principal.name }
      const key = toCallerKey(principal, req.header('idempotency-key'))
      requireAccepted(await runtime.feedback(runId, given, omitUndefined({ key })))
      return respondJson({ accepted: true })
    },
  )
  routes.post(
    '/runs/:run/resume',
    {
      operationId: 'resumeRun',
      summary: 'Takes up an interrupted run.',
      permission: 'resume',
      // `takeOver` does not wait for the lease of a process that may have died.
      body: {
        name: 'Resume',
        schema: z.strictObject({ takeOver: z.exactOptional(z.boolean()) }),
        example: {},
      },
      answers: { 202: 'The run is taken up.' },
      fields: ['accepted'],
    },
    async ({ runId, readBody }) => {
      const { takeOver = false } = await readBody()
      await requireResumable(ledger, runId, takeOver)
      if (served.wake) {
        if (takeOver) requireDriving(served, 'take a run over')
        await served.wake(await findOpenRoot(ledger, runId))
        return respondJson({ accepted: true }, 202)
      }
      // Until the resume is on record, or the run has stopped.
      const { seq } = (await ledger.head(runId)) ?? { seq: 0 }
      const run = runtime.resume(runId, { context: served.context, takeOver })
      await Promise.race([awaitFirstEvent(served, run, seq), run.result])
      return respondJson({ accepted: true }, 202)
    },
  )
}

function toParts<Part>(
  content: string | readonly Part[],
): readonly (Part | { readonly type: 'text'; readonly text: string })[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/** Sends a command to a run. Throws a problem if the principal may not send it, or the run refuses it. */
export async function sendCommand(
  served: Served,
  principal: Principal,
  runId: RunId,
  command: OutsideCommand,
  key?: string,
): Promise<void> {
  requireAccepted(await deliverCommand(served, principal, runId, command, key))
}

function requireAccepted(acknowledgement: CommandAcknowledgement): void {
  if (acknowledgement.accepted) return
  const { code, message } = acknowledgement
  const status = { malformed: 400, not_an_approver: 403 }[code as string] ?? 409
  throw new RefusedRequestError(status, code, message)
}

/**
 * Sends a command to a run, and returns what the run answers: to one that is sent again under its key, the same. Every route sends
 * by this function, which throws a problem if the principal may not send the command.
 */
export async function deliverCommand(
  served: Served,
  principal: Principal,
  runId: RunId,
  given: OutsideCommand,
  key?: string,
): Promise<CommandAcknowledgement> {
  requirePermission(principal, commandRoutes[given.type].permission)
  const isDecision = given.type === 'approve' || given.type === 'deny'
  const command = isDecision ? { ...given, ...omitUndefined({ roles: principal.roles }) } : given
  const isRepeated = async (): Promise<boolean> =>
    key !== undefined && (await wasAccepted(served.ledger, runId, command, key))
  try {
    const answer = await passCommand(served, runId, command, key ?? crypto.randomUUID())
    return answer.accepted || !(await isRepeated()) ? answer : { accepted: true }
  } catch (error) {
    if (error instanceof LedgerConflictError && (await isRepeated())) return { accepted: true }
    throw error
  }
}

/**
 * Whether a run has accepted this very command under its key. Waits for the decision, as the one who sent it first does: by now
 * a process drives the run.
 */
async function wasAccepted(
  ledger: Ledger,
  runId: RunId,
  command: OutsideCommand,
  key: string,
): Promise<boolean> {
  // What is about a call of a child run is on record there, and may have come by way of the root.
  const target = ('toolCallId' in command ? extractRunId(command.toolCallId) : undefined) ?? runId
  if (!(await isDescendantOf(ledger, target, runId))) return false
  for (const place of new Set([await findOpenRoot(ledger, runId), target])) {
    let found = await findSentBefore(ledger, place, command, key)
    if (found === 'waits') {
      await firstValueFrom(
        ledger.changes(place, 'inbox').pipe(
          startWith(undefined),
          concatMap(() => ledger.inbox(place)),
          filter((entries) => entries.every((entry) => entry.key !== key)),
        ),
      )
      found = await findSentBefore(ledger, place, command, key)
    }
    if (found !== undefined) return found === 'record'
  }
  if (target !== runId) return false
  // A pause of what is paused, say, has changed nothing, and would not now.
  const state = await readState(ledger, runId)
  const decision = decide(state, command, { at: state.at, random: 0 })
  return 'facts' in decision && decision.facts.length === 0
}

async function passCommand(
  { runtime, context, wake }: Served,
  runId: RunId,
  command: OutsideCommand,
  commandKey: string,
): Promise<CommandAcknowledgement> {
  // One key for both ways, so that a command which the first one had put already is not put again.
  if (wake === undefined) {
    try {
      return await runtime.send(runId, command, { key: commandKey, context })
    } catch (error) {
      // This process cannot drive the run, since it does not know its agent: the command is left for one that can.
      if (!(error instanceof ConfigurationError)) throw error
    }
  }
  const { wake: root, ...answer } = await runtime.post(runId, command, { key: commandKey })
  if (answer.accepted) await wake?.(root)
  return answer
}

async function requireResumable(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<void> {
  const status = await readStatus(ledger, await readState(ledger, runId))
  if (status === 'done') {
    throw new RefusedRequestError(
      409,
      'run_finished',
      'The run has ended. Start a run of its session, or fork it.',
    )
  }
  if (status !== 'under_way' || takeOver) return
  throw new RefusedRequestError(
    409,
    'under_way',
    'A process drives the run: follow its events. If it died on another machine, its lease ends within seconds; {"takeOver":true} does not wait for that, and work in flight of a process that is still alive may then happen twice.',
  )
}

/** A decision about a call as a chat has it, with the id of the question. */
export interface NamedDecision {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason: string
  readonly input?: JsonObject
}

/** Sends decisions to their run, and returns the place in the run from which it shows what became of them. */
export async function sendDecisions(
  served: Served,
  principal: Principal,
  runId: RunId,
  decisions: readonly NamedDecision[],
): Promise<FollowedRun> {
  const after = (await served.ledger.head(runId))?.seq ?? 0
  for (const decision of decisions) await sendDecision(served, principal, runId, decision)
  return { runId, after }
}

/** Sends a decision to its run. Throws a problem if the run refuses it. */
export async function sendDecision(
  served: Served,
  principal: Principal,
  runId: RunId,
  { approvalId, approved, reason, input }: NamedDecision,
): Promise<void> {
  const question = parseApprovalId(approvalId)
  if (question === undefined) {
    throw createMalformedError(
      'The approval has no id of this server. Send the id under which the approval was asked for.',
    )
  }
  const named = { ...question, by: principal.name, via: 'chat' } as const
  await sendCommand(
    served,
    principal,
    runId,
    approved
      ? { type: 'approve', ...named, ...omitUndefined({ input }) }
      : { type: 'deny', ...named, reason },
  )
}
