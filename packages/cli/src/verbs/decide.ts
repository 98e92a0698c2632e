import { type JsonObject, type LimitName, limitNames } from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import type { Command } from 'commander'
import { filledText, jsonObject, onCall, onLedger, positiveNumber } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { accountName, acknowledge, decideCall, putCommand } from '../drive/decide-call.ts'
import { findCall, findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { waitsOf } from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'

/** What `approve` was given. */
export interface ApproveOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly input?: JsonObject
  readonly reason?: string
}

/** Declares what `approve` takes. */
export function declareApprove(verb: Command, context: CommandContext, done: Done): void {
  onCall(verb)
    .option('--input <json>', 'run the call with this input instead', jsonObject)
    .option('--reason <text>', 'why, for the record')
    .action(
      async (
        ledger: string,
        run: string,
        call: string,
        options: Omit<ApproveOptions, 'ledger' | 'run' | 'call'>,
      ) => {
        done(await approve(context, { ledger, run, call, ...options }))
      },
    )
}

/** `approve`: leaves an approval in the run's inbox, for the process that drives the run. */
export function approve(
  context: CommandContext,
  { input, reason, ...decision }: ApproveOptions,
): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({
      type: 'approve',
      toolCallId,
      by,
      via: 'command',
      ...(input !== undefined && { input }),
      ...(reason !== undefined && { reason }),
    }),
  })
}

/** What `deny` was given. */
export interface DenyOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly reason: string
}

/** Declares what `deny` takes. */
export function declareDeny(verb: Command, context: CommandContext, done: Done): void {
  onCall(verb)
    .requiredOption('--reason <text>', 'why; the model reads it')
    .action(async (ledger: string, run: string, call: string, options: { by?: string; reason: string }) => {
      done(await deny(context, { ledger, run, call, ...options }))
    })
}

/** `deny`: leaves a denial in the run's inbox, for the process that drives the run. */
export function deny(context: CommandContext, { reason, ...decision }: DenyOptions): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({ type: 'deny', toolCallId, by, via: 'command', reason }),
  })
}

/** What `settle` was given: exactly one of `result` and `failed`. `call` may be an end of the id, or the id outside. */
export interface SettleOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly result?: string
  readonly failed?: string
  readonly by?: string
  readonly reason?: string
}

/** Declares what `settle` takes. */
export function declareSettle(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .argument('<call>', 'id of the tool call, an unambiguous end of it, or its external id')
    .option('--result <text>', 'the result, if the call succeeded')
    .option('--failed <text>', 'the error, if the call failed')
    .option('--by <name>', 'who settles it (default: the name of your account)', filledText)
    .option('--reason <text>', 'why, for the record')
    .action(
      async (
        ledger: string,
        run: string,
        call: string,
        options: Omit<SettleOptions, 'ledger' | 'run' | 'call'>,
      ) => {
        done(await settle(context, { ledger, run, call, ...options }))
      },
    )
}

/**
 * `settle`: leaves the result of a call that an outside system carries out in the inbox of the run that waits for it.
 */
export function settle(context: CommandContext, options: SettleOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, call: given, result, failed, by = accountName(), reason } = options
  const { programName } = context
  const text = result ?? failed
  if (text === undefined || (result !== undefined && failed !== undefined)) {
    throw new CommandError('usage', 'Say how the call ended: --result TEXT, or --failed TEXT.')
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const named = await findRun(ledger, run, { programName, ledgerPath })
    const { deferred: waiting } = await waitsOf(ledger, await foldTo(ledger, named))
    const show = commandLine(programName, 'show', ledgerPath, named)
    const [byExternalId, ...others] = waiting.filter(({ externalId }) => externalId === given)
    const call =
      byExternalId && others.length === 0
        ? byExternalId
        : await findCall(given, { ledger, named, waiting, awaited: 'its result', show })
    const { runId } = call
    const command = {
      type: 'settle' as const,
      toolCallId: call.toolCallId,
      outcome: failed === undefined ? ('success' as const) : ('failed' as const),
      content: [{ type: 'text' as const, text }],
      by,
      ...(reason !== undefined && { reason }),
    }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}

/** What `raise` was given. */
export interface RaiseOptions {
  readonly ledger: string
  readonly run: string
  readonly limit: string
  readonly max: number
  readonly by?: string
  readonly reason?: string
}

/** Declares what `raise` takes. */
export function declareRaise(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .argument('<limit>', 'name of the limit, such as maxTurns')
    .argument('<max>', 'the new maximum', positiveNumber)
    .option('--by <name>', 'who raises it (default: the name of your account)', filledText)
    .option('--reason <text>', 'why, for the record')
    .action(async (ledger: string, ...rest: [string, string, number, { by?: string; reason?: string }]) => {
      const [run, limit, max, options] = rest
      done(await raise(context, { ledger, run, limit, max, ...options }))
    })
}

/** `raise`: leaves a higher limit in the run's inbox. `resume` continues a run that is suspended at it. */
export function raise(context: CommandContext, options: RaiseOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, limit, max, by = accountName(), reason } = options
  if (!isLimit(limit)) {
    throw new CommandError('usage', `There is no limit ${limit}. Use one of: ${limitNames.join(', ')}.`)
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName: context.programName, ledgerPath })
    const { limits, ...state } = await foldTo(ledger, runId)
    if (state.phase === 'done') {
      throw new CommandError(
        'refused',
        `Run ${runId} is done (${state.reason}), so no limit applies any more. To continue after its end, start a run of its session, or fork it.`,
      )
    }
    const present = limits[limit]
    if (present === undefined || max <= present) {
      const now = present === undefined ? 'has no such limit' : `has ${limit} ${present} already`
      throw new CommandError(
        'refused',
        `Run ${runId} ${now}, so ${max} would not raise it. ${present === undefined ? 'What is not set needs no raise.' : 'Give more.'}`,
      )
    }
    const why = reason === undefined ? {} : { reason }
    const command = { type: 'raise_limit' as const, limit, max, by, ...why }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}

function isLimit(name: string): name is LimitName {
  return (limitNames as readonly string[]).includes(name)
}

/** What `cancel` was given. */
export interface CancelOptions {
  readonly ledger: string
  readonly run: string
  readonly by?: string
  readonly reason?: string
}

/** Declares what `cancel` takes. */
export function declareCancel(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .option('--by <name>', 'who asks (default: the name of your account)', filledText)
    .option('--reason <text>', 'why')
    .action(async (ledger: string, run: string, options: { by?: string; reason?: string }) => {
      done(await cancel(context, { ledger, run, ...options }))
    })
}

/** `cancel`: leaves a request to stop in the run's inbox. What was finished is kept; every open call gets a result. */
export function cancel(context: CommandContext, options: CancelOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, by = accountName(), reason } = options
  const { programName } = context
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const state = await foldTo(ledger, runId)
    if (state.phase === 'done') {
      const show = commandLine(programName, 'show', ledgerPath, runId)
      throw new CommandError(
        'refused',
        `Run ${runId} is done (${state.reason}), so nothing is left to stop. See it: ${show}`,
      )
    }
    const command = { type: 'cancel' as const, by, ...(reason !== undefined && { reason }) }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}
