import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createRuntime, type Ledger, type PendingApproval, type RunId, type RunState } from '@tallystick/core'
import { findInputFault, omitUndefined } from '@tallystick/core/internal'
import { decide } from '@tallystick/core/machine'
import {
  type StandingOptions,
  toCanonicalJson,
  type JsonObject,
  limitNames,
  type OutsideCommand,
} from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import type { Command } from '@commander-js/extra-typings'
import {
  readAccountName,
  parseFilled,
  parseJsonObject,
  declareRunArguments,
  parsePositiveNumber,
  parseStanding,
  rolesHelp,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand, printJson } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { formatJson } from '../command/text.ts'
import { parseScore } from '../command/where.ts'
import { findCall, type NamedRun, readParents, withRun } from '../runs/find-run.ts'
import { readWaits } from '../runs/run-status.ts'
import { formatStanding } from '../view/events.ts'

// Each of these verbs leaves a command in the inbox of a run, for the process that drives it now or next; feedback on a run that has
// ended is recorded at once.

export function declareApprove(verb: Command, context: CommandContext): void {
  declareCall(verb)
    .option('--input <json>', 'run the call with this input instead', parseJsonObject)
    .option('--reason <text>', 'why, for the record')
    .option(
      '--standing <calls>',
      'also approve later calls of the tool: session=8h all of the session, equal_input=8h those with this input',
      parseStanding,
    )
    .action((ledger, run, call, { by, role: roles, input, reason, standing }) =>
      decideCall(context, { ledger, run }, call, by, {
        type: 'approve',
        ...omitUndefined({ input, reason, roles, standing }),
      }),
    )
}

export function declareDeny(verb: Command, context: CommandContext): void {
  declareCall(verb)
    .requiredOption('--reason <text>', 'why; the model reads it')
    .action((ledger, run, call, { by, role: roles, reason }) =>
      decideCall(context, { ledger, run }, call, by, { type: 'deny', reason, ...omitUndefined({ roles }) }),
    )
}

function declareCall(verb: Command) {
  return declareRunArguments(verb)
    .argument('<call>', 'id of the tool call, or an unambiguous end of it')
    .option('--by <name>', 'who decides (default: the name of your account)', parseFilled)
    .option('--role <names...>', rolesHelp)
}

type Decision =
  | {
      readonly type: 'approve'
      readonly input?: JsonObject
      readonly reason?: string
      readonly roles?: readonly string[]
      readonly standing?: StandingOptions
    }
  | { readonly type: 'deny'; readonly reason: string; readonly roles?: readonly string[] }

/** Leaves a decision about a call in the inbox of the run that asks: the run that is named, or a child of it. */
function decideCall(
  context: CommandContext,
  named: NamedRun,
  given: string,
  by: string = readAccountName(),
  decision: Decision,
): Promise<void> {
  return withRun(context, named, 'write', async (ledger, runId) => {
    const { approvals: waiting } = await readWaits(ledger, await foldTo(ledger, runId))
    const show = formatCommand(context.programName, 'show', named.ledger, runId)
    const call = await findCall(given, { ledger, named: runId, waiting, awaited: 'an approval', show })
    const { toolCallId, attempt, inputDigest } = call
    const command = { ...decision, toolCallId, by, via: 'command', attempt, inputDigest }
    await requireFirst(ledger, call.runId, command, call.approvers !== undefined)
    if (command.type === 'approve' && command.input) await requireFits(ledger, call, command.input)
    requireAllowed(await foldTo(ledger, call.runId), command)
    await recordCommand(context, { ledger, ledgerPath: named.ledger, runId: call.runId, command, call })
  })
}

/** Refuses here what the run as it is on record does not allow: its writer would refuse it where nobody reads that. */
function requireAllowed(state: RunState, command: OutsideCommand): void {
  const decision = decide(state, command, { at: Math.max(Date.now(), state.at), random: 0 })
  if ('refused' in decision) throw new CommandError('refused', decision.refused.message)
}

/** Declares `withdraw`. Behind the end of a run it is an edit of its session, whose next run would have the approval. */
export function declareWithdraw(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .argument('<call>', 'id of the call whose approval stands, or an unambiguous end of it')
    .option('--by <name>', 'who withdraws it (default: the name of your account)', parseFilled)
    .option('--reason <text>', 'why, for the record', parseFilled)
    .action((ledgerPath, run, given, { by = readAccountName(), reason }) =>
      withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const state = await foldTo(ledger, runId)
        const standing = findStanding(state, given)
        const { phase, sessionId } = state
        if (phase !== 'done' || sessionId === undefined) {
          const command = { type: 'withdraw' as const, standing, by, ...omitUndefined({ reason }) }
          requireAllowed(state, command)
          return await recordCommand(context, { ledger, ledgerPath, runId, command })
        }
        const session = createRuntime({ ledger }).session(sessionId)
        if (!(await session.withdraw(standing, { by, owner: by, ...omitUndefined({ reason }) })))
          throw new CommandError('refused', `The approval ${standing} holds no more in session ${sessionId}.`)
        if (context.json) return await printJson(context, { runId, sessionId, withdrawn: standing })
        context.say(`Recorded: the standing approval ${standing} of session ${sessionId} is withdrawn.`)
      }),
    )
}

/** The standing approval of a run by the id of its call, or by an end of it. */
function findStanding({ runId, standing = [] }: RunState, given: string): string {
  const ids = standing.map(({ toolCallId }): string => toolCallId)
  const fitting = ids.filter((id) => given !== '' && id.endsWith(given))
  const [found, ...others] = fitting.includes(given) ? [given] : fitting
  if (found !== undefined && others.length === 0) return found
  throw new CommandError(
    found === undefined ? 'not_found' : 'usage',
    `${found === undefined ? `No approval of a call ${given}` : `More than one approval of a call ${given}`} stands in run ${runId}. Standing: ${ids.join(', ') || 'none'}.`,
  )
}

/**
 * A call is decided, and settled, once. The run's writer would refuse a second decision, so it is refused here, in words. The first may
 * wait in the inbox of the run that asks, or of a parent of it.
 */
async function requireFirst(
  ledger: Ledger,
  owner: RunId,
  command: Extract<OutsideCommand, { type: 'approve' | 'deny' | 'settle' }>,
  isShared = false,
): Promise<void> {
  const ended = command.type === 'settle' ? 'settled' : 'decided'
  for (const runId of [owner, ...(await readParents(ledger, owner))]) {
    for (const { command: earlier } of await ledger.inbox(runId)) {
      if (!('toolCallId' in earlier) || earlier.toolCallId !== command.toolCallId) continue
      if (isDeepStrictEqual(earlier, command)) continue
      // A call that several people have to approve takes one approval of each.
      if (isShared && earlier.type === 'approve' && command.type === 'approve' && earlier.by !== command.by)
        continue
      throw new CommandError(
        'refused',
        `Call ${earlier.toolCallId} is ${ended} already: ${earlier.type}${'by' in earlier ? ` by ${earlier.by}` : ''} waits for the run's writer. A call is ${ended} once: resume the run, or wait until its writer has read that.`,
      )
    }
  }
}

/** Checks another input against the recorded schema; the tool's own code is only where the run is driven. */
async function requireFits(
  ledger: Ledger,
  { runId, name, toolCallId }: PendingApproval,
  input: JsonObject,
): Promise<void> {
  const { definition } = await foldTo(ledger, runId)
  const tool = definition.tools.find((each) => each.name === name)
  const fault = tool && (await findInputFault(tool.inputSchema, input))
  if (fault === undefined) return
  throw new CommandError(
    'usage',
    `The input does not fit the schema of ${name}, so nothing was recorded: ${fault}. Correct --input; call ${toolCallId} still waits.`,
  )
}

/** Declares `settle`. Exactly one of `--result` and `--failed` is given. */
export function declareSettle(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .argument('<call>', 'id of the tool call, an unambiguous end of it, or its external id')
    .option('--result <text>', 'the result, if the call succeeded')
    .option('--failed <text>', 'the error, if the call failed')
    .option('--by <name>', 'who settles it (default: the name of your account)', parseFilled)
    .option('--reason <text>', 'why, for the record')
    .action((ledgerPath, run, given, { result, failed, by = readAccountName(), reason }) => {
      const text = result ?? failed
      if (text === undefined || (result !== undefined && failed !== undefined)) {
        throw new CommandError('usage', 'Say how the call ended: --result TEXT, or --failed TEXT.')
      }
      return withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const { deferred: waiting } = await readWaits(ledger, await foldTo(ledger, runId))
        const show = formatCommand(context.programName, 'show', ledgerPath, runId)
        const [byExternalId, ...others] = waiting.filter(({ externalId }) => externalId === given)
        const call =
          byExternalId && others.length === 0
            ? byExternalId
            : await findCall(given, { ledger, named: runId, waiting, awaited: 'its result', show })
        const command = {
          type: 'settle' as const,
          toolCallId: call.toolCallId,
          outcome: failed === undefined ? ('success' as const) : ('failed' as const),
          content: [{ type: 'text' as const, text }],
          by,
          ...omitUndefined({ reason }),
        }
        await requireFirst(ledger, call.runId, command)
        await recordCommand(context, { ledger, ledgerPath, runId: call.runId, command })
      })
    })
}

export function declareRaise(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .argument('<limit>', 'name of the limit, such as maxTurns')
    .argument('<max>', 'the new maximum', parsePositiveNumber)
    .option('--by <name>', 'who raises it (default: the name of your account)', parseFilled)
    .option('--reason <text>', 'why, for the record')
    .action((ledgerPath, run, name, max, { by = readAccountName(), reason }) => {
      const limit = limitNames.find((known) => known === name)
      if (limit === undefined) {
        throw new CommandError('usage', `There is no limit ${name}. Use one of: ${limitNames.join(', ')}.`)
      }
      return withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const { limits, ...state } = await foldTo(ledger, runId)
        const present = limits[limit]
        if (state.phase === 'done') {
          throw new CommandError(
            'refused',
            `Run ${runId} is done (${state.reason}), so its limits no longer apply. To continue after its end, start a run of its session, or fork it.`,
          )
        }
        if (present === undefined) {
          throw new CommandError(
            'refused',
            `Run ${runId} has no such limit, so ${max} would not raise it. A limit that is not set needs no raise.`,
          )
        }
        if (max <= present) {
          throw new CommandError(
            'refused',
            `Run ${runId} has ${limit} ${present} already, so ${max} would not raise it. Give more.`,
          )
        }
        const command = { type: 'raise_limit' as const, limit, max, by, ...omitUndefined({ reason }) }
        await recordCommand(context, { ledger, ledgerPath, runId, command })
      })
    })
}

export function declareFeedback(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .option('--score <number>', 'higher is better, such as 0 to 1', parseScore)
    .option('--note <text>', 'in words', parseFilled)
    .option('--by <name>', 'who says it (default: the name of your account)', parseFilled)
    .action((ledgerPath, run, { score, note, by = readAccountName() }) => {
      if ((score ?? note) === undefined)
        throw new CommandError(
          'usage',
          'Say what you think of the run: --score NUMBER, --note TEXT, or both.',
        )
      return withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const feedback = { by, ...omitUndefined({ score, note }) }
        const answer = await createRuntime({ ledger }).feedback(runId, feedback)
        if (!answer.accepted) throw new CommandError('refused', answer.message)
        if (context.json) return await printJson(context, { runId, feedback })
        context.say(`Recorded: feedback of ${by} on run ${runId}.`)
      })
    })
}

/** Declares `cancel`. What was finished is kept, and every open call gets a result. */
export function declareCancel(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .option('--by <name>', 'who asks (default: the name of your account)', parseFilled)
    .option('--reason <text>', 'why')
    .action((ledgerPath, run, { by = readAccountName(), reason }) =>
      withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const state = await foldTo(ledger, runId)
        if (state.phase === 'done') {
          const show = formatCommand(context.programName, 'show', ledgerPath, runId)
          throw new CommandError(
            'refused',
            `Run ${runId} is done (${state.reason}), so there is nothing to stop. See it: ${show}`,
          )
        }
        const command = { type: 'cancel' as const, by, ...omitUndefined({ reason }) }
        await recordCommand(context, { ledger, ledgerPath, runId, command })
      }),
    )
}

/** A command, and the run whose inbox it goes into. */
interface AddressedCommand {
  readonly ledger: Ledger
  readonly ledgerPath: string
  readonly runId: RunId
  readonly command: OutsideCommand
  /** The call that it decides about. */
  readonly call?: PendingApproval
}

/**
 * Puts a command into the inbox of a run, and prints which run takes it: the topmost parent, if this is a child run. The
 * same command put twice is one entry.
 */
export async function recordCommand(context: CommandContext, addressed: AddressedCommand): Promise<void> {
  const { ledger, ledgerPath, runId, command, call } = addressed
  const digest = createHash('sha256').update(toCanonicalJson(command)).digest('hex')
  const added = await ledger.put(runId, { key: `${command.type}:${digest}`, command, at: Date.now() })
  const top = (await readParents(ledger, runId)).at(-1)
  const next = formatCommand(context.programName, 'resume', ledgerPath, top ?? runId)
  if (context.json) return await printJson(context, { runId, command, added, ...(call && { call }), next })
  const whose = `run ${runId}${top === undefined ? '' : `, a child run of ${top}`}`
  context.say(`${added ? 'Recorded' : 'This was asked for before'}: ${command.type} for ${whose}.`)
  if (call) context.say(formatDecision(call, command))
  context.say('The process that drives the run takes the command. If there is none, this continues the run:')
  await context.print(`${next}\n`)
}

/** The call that was decided about, whole, as it will run. */
function formatDecision({ name, toolCallId, input }: PendingApproval, command: OutsideCommand): string {
  const head = `${name} ${toolCallId}`
  if (command.type === 'deny')
    return `${head} will not run: ${command.reason}\nAsked for: ${formatJson(input)}`
  const { input: changed, standing } = command.type === 'approve' ? command : {}
  const covered = standing ? `\nIt is approved ${formatStanding(standing, Date.now())}.` : ''
  if (changed === undefined) return `${head} will run with: ${formatJson(input)}${covered}`
  return `${head} will run with: ${formatJson(changed)}\ninstead of: ${formatJson(input)}`
}
