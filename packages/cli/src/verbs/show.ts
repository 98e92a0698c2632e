import type { InboxEntry, Ledger, Message, RunId } from '@tallystick/core'
import { transcript } from '@tallystick/core'
import { rebuiltRequest } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { CommandError, exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { isDrivenSomewhere, withLedger } from '../open-ledger.ts'
import { readRun, type RunReading } from '../read-run.ts'
import { ownWaits, waitsOf, type Waits } from '../waits.ts'
import { eventText, isOfInterest } from '../view/event-text.ts'
import { openCallsOf } from '../view/open-call.ts'
import { originText, relationText } from '../view/origin-text.ts'
import type { Paint } from '../view/paint.ts'
import { counted, tallyText, usageText } from '../view/run-ending.ts'
import { runStatus, statusText, type RunStatus } from '../view/run-status.ts'
import { table } from '../view/table.ts'
import { transcriptText } from '../view/transcript-text.ts'

const eventCharactersMax = 120

/** What `show` was given. */
export interface ShowOptions {
  readonly ledger: string
  readonly run: string
  /** The `seq` that the run is shown at. */
  readonly at?: number
  /** Shows the model's request there, in the place of the transcript. */
  readonly request?: boolean
  /** Shows its events, one a line, in the place of the transcript. */
  readonly events?: boolean
}

/** A run at one of its events. */
interface Shown extends RunReading {
  /** The run's last event. */
  readonly seqMax: number
  readonly waits: Waits
  readonly standing: RunStatus
  /** The runs that work for it, as they stand now. */
  readonly workers: readonly Worker[]
  /** Commands that nobody has taken up yet. */
  readonly inbox: readonly InboxEntry[]
}

interface Worker extends RunStatus {
  readonly runId: RunId
  readonly agent: string
}

/** `show`: the state of a run and what its model was shown or sent, now or right behind an event. */
export function show(
  context: CommandContext,
  { ledger: ledgerPath, run, at, request = false, events = false }: ShowOptions,
): Promise<ExitCode> {
  const { programName, paint } = context
  const isDriven = isDrivenSomewhere(ledgerPath)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const seqMax = (await ledger.head(runId))?.seq ?? 0
    if (at !== undefined && at > seqMax) {
      const last = commandLine(programName, 'show', ledgerPath, runId, '--at', `${seqMax}`)
      throw new CommandError(
        'not_found',
        `Run ${runId} has ${seqMax} events, so there is no event ${at}. See the last: ${last}`,
      )
    }
    const reading = await readRun(ledger, runId, at)
    const { state } = reading
    const isNow = state.seq >= seqMax
    // What other runs wait for is known of now only.
    const waits = isNow ? await waitsOf(ledger, state) : ownWaits(state)
    const shown: Shown = {
      // At an earlier event it went on, whatever became of it since.
      ...{ ...reading, seqMax, waits, standing: runStatus(state, { waits, isDriven: isDriven || !isNow }) },
      workers: await workersOf(ledger, reading.children, isDriven),
      inbox: isNow ? await ledger.inbox(runId) : [],
    }
    if (context.json) await context.print(`${JSON.stringify(asData(shown))}\n`)
    else {
      const below = request ? requestText : events ? () => '' : transcriptOf
      await context.print(`${factsText(shown)}\n${below(shown, paint)}`)
      if (events) await printEvents(context, ledger, shown)
    }
    return exitCodes.ok
  })
}

async function workersOf(
  ledger: Ledger,
  runIds: readonly RunId[],
  isDriven: boolean,
): Promise<readonly Worker[]> {
  const workers: Worker[] = []
  for (const runId of runIds) {
    // A call may have been started without that its run was, and a fork has had none of its own.
    if ((await ledger.head(runId)) === undefined) continue
    const { state } = await readRun(ledger, runId)
    const standing = runStatus(state, { waits: await waitsOf(ledger, state), isDriven })
    workers.push({ runId, agent: state.agent, ...standing })
  }
  return workers
}

function asData(shown: Shown): object {
  const { state, tally, agents, seqMax, waits, standing, workers, inbox } = shown
  const { runId, agent, definition, phase, turn, seq, epoch, totals, limits, cancel, metLimit } = state
  const { sessionId, sessionPlace, parent } = state
  const { turns, toolCalls, children, usage, costUsd } = totals
  return {
    ...{ runId, agent, agents, model: definition.model, sessionId, sessionPlace, parent, ...standing },
    ...{ phase, turn, seq, seqMax, epoch },
    ...{ startedAt: timeText(state.startedAt), lastEventAt: timeText(state.at), limits, cancel, metLimit },
    ...{ turns, toolCalls, children, usage, costUsd, tally, removedFrom: state.removedFrom },
    ...{ pendingApprovals: waits.approvals, deferredCalls: waits.deferred, openCalls: openCallsOf(state) },
    ...{ workers, inbox, messages: recordedMessages(shown), request: rebuiltRequest(state) },
  }
}

/** Without what would stand in for calls that have no result yet. */
function recordedMessages({ state }: Shown): readonly Message[] {
  const open = new Set(openCallsOf(state).map(({ toolCallId }) => toolCallId))
  return transcript(state).flatMap((message): readonly Message[] => {
    if (message.role !== 'tool') return [message]
    const results = message.results.filter(({ toolCallId }) => !open.has(toolCallId))
    return results.length === 0 ? [] : [{ ...message, results }]
  })
}

function transcriptOf({ state }: Shown, paint: Paint): string {
  return transcriptText(transcript(state), { paint, open: openCallsOf(state) })
}

/** A line for each event that says something of its own, under the number that `--at` takes. */
async function printEvents({ print }: CommandContext, ledger: Ledger, { state }: Shown): Promise<void> {
  const width = `${state.seq}`.length
  for await (const event of ledger.read(state.runId, { toSeq: state.seq })) {
    if (!isOfInterest(event) && event.type !== 'tool_results_injected') continue
    const turn = event.turn === 0 ? '' : `turn ${event.turn}`
    await print(
      `${`${event.seq}`.padStart(width)}  ${turn.padEnd(8)}  ${eventText(event, eventCharactersMax)}\n`,
    )
  }
}

/** The very request, as JSON, under a line that says whether it was sent. */
function requestText({ state }: Shown, paint: Paint): string {
  const { model, request, requestDigest } = rebuiltRequest(state)
  const which = `${model.provider} ${model.modelId}`
  const head =
    requestDigest === undefined
      ? `No model call is in flight here. One to ${which} would carry this, unless the agent's prepareTurn says otherwise:`
      : `In flight to ${which}, digest ${requestDigest}:`
  return `${paint('bold', head)}\n${JSON.stringify(request, undefined, 2)}\n`
}

function factsText(shown: Shown): string {
  const { state, tally, agents, seqMax, waits, standing, workers, inbox } = shown
  const { parent } = state
  const origin = parent?.relation === 'session' ? relationText(parent) : ''
  const partOf = [originText(state), origin].filter((text) => text !== '').join(', ')
  const rows = [
    ['run', state.runId],
    ['agent', `${agents.join(' → ')}, model ${state.definition.model.modelId}`],
    ...(partOf === '' ? [] : [['part of', partOf]]),
    ['status', statusText(standing)],
    ['phase', `${state.phase}, turn ${state.turn}, event ${state.seq} of ${seqMax}, writer ${state.epoch}`],
    ['started', `${timeText(state.startedAt)}, last event ${timeText(state.at)}`],
    ['used', usedText(shown)],
    ['tally', tallyText(tally)],
    ...(state.removedFrom === undefined ? [] : [['content', contentText(state.removedFrom)]]),
    ...waits.approvals.map(({ name, toolCallId, input, runId }) => [
      'waiting',
      `${name} ${toolCallId} ${JSON.stringify(input)}${ofRun(runId, state.runId)}`,
    ]),
    ...waits.deferred.map(({ name, toolCallId, receipt, runId }) => [
      'waiting',
      `${name} ${toolCallId} goes on outside as ${receipt}${ofRun(runId, state.runId)}`,
    ]),
    ...workers.map(({ runId, agent, ...stands }) => ['worker', `${runId} ${agent}, ${statusText(stands)}`]),
    ...inbox.map(({ command }) => ['inbox', `${commandText(command)}, for whoever drives the run next`]),
  ]
  return table(rows)
}

/** What was said is not all there, or not readable without keys. */
function contentText(removedFrom: number): string {
  return `not all there, from event ${removedFrom} on; verify says why`
}

function usedText({ state }: Shown): string {
  const { turns, toolCalls, children, usage, costUsd } = state.totals
  const own = [counted(turns, 'turn'), counted(toolCalls, 'tool call')]
  const below =
    children.runs === 0
      ? []
      : [
          `${counted(children.runs, 'child run')} with ${counted(children.turns, 'turn')} and ${counted(children.toolCalls, 'tool call')}`,
        ]
  const cost = costUsd === undefined ? [] : [`$${costUsd.toFixed(4)}`]
  return [...own, ...below, usageText(usage), ...cost].join(', ')
}

function ofRun(runId: RunId, shown: RunId): string {
  return runId === shown ? '' : `, in run ${runId}`
}

function commandText(command: InboxEntry['command']): string {
  const call = 'toolCallId' in command ? ` ${command.toolCallId}` : ''
  const by = 'by' in command && command.by !== undefined ? ` by ${command.by}` : ''
  return `${command.type}${call}${by}`
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
