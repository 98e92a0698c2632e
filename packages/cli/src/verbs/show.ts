import type { Ledger, Message, RunId, RunState } from '@tallystick/core'
import { isRunDriven, omitUndefined, readResultWithChildren, toRunTimes } from '@tallystick/core/internal'
import { evolve, toTranscript } from '@tallystick/core/machine'
import { type EventOf, eventTypes } from '@tallystick/core/vocabulary'
import { foldTo, rebuildRequest } from '@tallystick/ledger'
import { type Command, Option } from '@commander-js/extra-typings'
import { declareRunArguments, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither, printJson } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { formatDuration, formatJson, formatTime } from '../command/text.ts'
import { withRun } from '../runs/find-run.ts'
import { readEvents, readRun, readWaitedTime } from '../runs/read-run.ts'
import { listOwnWaits, toStatusView, type RunStatusView, readWaits } from '../runs/run-status.ts'
import { type RunStory, StoryBuilder, storyTypes } from '../runs/run-story.ts'
import type { Paint } from '../terminal/paint.ts'
import { formatEvent, isOfInterest } from '../view/events.ts'
import { formatAddition, type ChildRun, formatFacts, type ShownRun, toTally } from '../view/run-facts.ts'
import { listOpenCalls, formatStory } from '../view/story-text.ts'

/** Declares `show`: the state of a run and what happened in it, up to now or to an event; one of its turns; one of its events. */
export function declareShow(verb: Command, context: CommandContext): void {
  declareRunArguments(verb)
    .option('--at <seq>', 'the run as it was right after this event', parseWholeNumber)
    .option('--turn <n>', 'only this turn', parseWholeNumber)
    .addOption(
      new Option('--event <seq>', 'only this event, whole; with --json on one line')
        .argParser(parseWholeNumber)
        .conflicts(['at', 'turn', 'request', 'events']),
    )
    .option('--request', 'the request that the model got, or would get, at this event')
    .addOption(
      new Option('--events', 'the events without deltas, one per line').conflicts(['request', 'json']),
    )
    .option('--whole', 'print similar turns one by one instead of joining them')
    .option('--no-pager', 'on a terminal, print directly instead of through PAGER or less')
    .action(async (ledgerPath, run, { request, events, ...options }) => {
      const { at, event, turn, whole = false, pager } = options
      await withRun(context, { ledger: ledgerPath, run }, 'read', async (ledger, runId) => {
        const maxSeq = (await ledger.head(runId))?.seq ?? 0
        const asked = at ?? event
        if (asked !== undefined && asked > maxSeq) {
          const last = formatCommand(context.programName, 'show', ledgerPath, runId, '--at', `${maxSeq}`)
          throw new CommandError(
            'not_found',
            `The run has ${maxSeq} events, so there is no event ${asked}. See the last: ${last}`,
          )
        }
        await context.paged(pager, async (paged) => {
          if (event !== undefined) return await showEvent(paged, ledger, runId, event)
          const showsStory = paged.json || !(request || events)
          const { shown, story } = await readShownRun(ledger, { runId, at, turn, maxSeq, showsStory })
          const { print, paint } = paged
          const { state } = shown
          if (turn !== undefined && (turn > state.turn || turn < 1)) {
            throw new CommandError(
              'not_found',
              `Run ${runId} has ${state.turn} turns here, so there is no turn ${turn}. Name one of them.`,
            )
          }
          if (paged.json) return await printJson(paged, toData(shown, story, turn))
          await print(`${formatFacts(shown)}\n`)
          if (request) return await print(formatRequest(state, paint))
          if (events) return await showEvents(paged, ledger, { state, toSeq: at, turn })
          const parts = story.parts.filter((part) => turn === undefined || part.turn === turn)
          // The messages before the run, as its model was first shown them.
          const carried = story.parts.find(({ kind }) => kind === 'history')
          const history = carried ? toTranscript(await foldTo(ledger, runId, carried.toSeq)) : []
          const view = { paint, state, history, whole: whole || turn !== undefined }
          await print(formatStory({ ...story, parts }, view))
        })
      })
    })
}

const maxEventCharacters = 120

/** `show --event`: an event whole, under a line that names it; with `--json` on one line. */
async function showEvent(context: CommandContext, ledger: Ledger, runId: RunId, seq: number): Promise<void> {
  for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
    const head = `event ${event.seq}, ${formatTime(event.at)}: ${formatEvent(event, maxEventCharacters)}`
    const whole = formatJson(JSON.parse(JSON.stringify(event)))
    await printEither(context, event, `${context.paint('bold', head)}\n${whole}\n`)
  }
}

/** `show --events`: a line for each event that matters to a reader, with its number and its time in the run. */
export async function showEvents(
  { print }: Pick<CommandContext, 'print'>,
  ledger: Ledger,
  {
    state,
    toSeq,
    turn,
  }: { readonly state: RunState; readonly toSeq?: number | undefined; readonly turn?: number | undefined },
): Promise<void> {
  const types = eventTypes.filter((type) => isOfInterest({ type }) || type === 'tool_results_injected')
  const width = `${state.seq}`.length
  const { startedAt } = toRunTimes(state)
  let called: EventOf<'model_call_started'> | undefined
  for await (const event of readEvents(ledger, state.runId, types, { toSeq, turn })) {
    if (event.type === 'model_call_started') called = event
    const isReply = event.type === 'assistant_message_finished' || event.type === 'model_stream_failed'
    const tookMs =
      isReply && called ? event.at - called.at : 'durationMs' in event ? event.durationMs : undefined
    const took = tookMs === undefined ? '' : `  took ${formatDuration(tookMs)}`
    const place = event.turn === 0 ? '' : `turn ${event.turn}`
    const since = `+${formatDuration(Math.max(0, event.at - startedAt))}`
    const what = formatEvent(event, maxEventCharacters)
    await print(
      `${`${event.seq}`.padStart(width)}  ${since.padEnd(12)}  ${place.padEnd(8)}  ${what}${took}\n`,
    )
  }
}

interface Asked {
  readonly runId: RunId
  readonly at: number | undefined
  readonly turn: number | undefined
  /** The run's last event. */
  readonly maxSeq: number
  readonly showsStory: boolean
}

async function readShownRun(
  ledger: Ledger,
  { runId, at, turn, maxSeq, showsStory }: Asked,
): Promise<{ readonly shown: ShownRun; readonly story: RunStory }> {
  const builder = new StoryBuilder()
  const reading = await readRun(ledger, runId, at, {
    types: showsStory ? storyTypes : [],
    turn,
    onEvent: (event) => builder.follow(event),
  })
  const { state } = reading
  const isNow = state.seq >= maxSeq
  // Only the present waits of other runs are known.
  const waits = isNow ? await readWaits(ledger, state) : listOwnWaits(state)
  const isDriven = isNow && (await isRunDriven(ledger, runId))
  const statusView = toStatusView(state, { waits, isDriven, isPast: !isNow })
  const story = await builder.end(ledger)
  const shown: ShownRun = {
    ...reading,
    maxSeq,
    waitedMs: await readWaitedTime(ledger, state),
    waits,
    statusView,
    ...(isNow && !isDriven && omitUndefined({ wakeAt: await readWakeTime(ledger, state) })),
    ...(!isNow && { now: await readStatusNow(ledger, state, maxSeq) }),
    childRuns: await readChildRuns(ledger, reading.outline.children),
    inbox: isNow ? await ledger.inbox(runId) : [],
  }
  return { shown, story }
}

/** Reads when a run continues by itself; `undefined` if it has nothing to do then, or has it now. */
async function readWakeTime(ledger: Ledger, state: RunState): Promise<number | undefined> {
  const { wakeAt } = await readResultWithChildren(state, ledger)
  return wakeAt !== undefined && wakeAt > state.at ? wakeAt : undefined
}

/** Reads the status of a run today. Damage in later events must not keep an earlier one from being shown. */
async function readStatusNow(ledger: Ledger, past: RunState, maxSeq: number): Promise<ShownRun['now']> {
  const { runId } = past
  try {
    // The end of a run says its status without a fold.
    for await (const event of ledger.read(runId, { fromSeq: maxSeq, toSeq: maxSeq })) {
      if (event.type === 'run_finished')
        return { status: 'done', reason: event.reason, ...omitUndefined({ detail: event.detail }) }
    }
    let state = past
    for await (const event of ledger.read(runId, { fromSeq: past.seq + 1 })) state = evolve(state, event)
    return await readCurrentStatus(ledger, state)
  } catch {
    return undefined
  }
}

async function readCurrentStatus(ledger: Ledger, state: RunState): Promise<RunStatusView> {
  const isDriven = await isRunDriven(ledger, state.runId)
  return toStatusView(state, { waits: await readWaits(ledger, state), isDriven })
}

async function readChildRuns(ledger: Ledger, runIds: readonly RunId[]): Promise<readonly ChildRun[]> {
  const childRuns: ChildRun[] = []
  for (const runId of runIds) {
    // A call may have started before its child run was on record, and a fork has no child runs of its own.
    if ((await ledger.head(runId)) === undefined) continue
    const state = await foldTo(ledger, runId)
    childRuns.push({ runId, agent: state.agent, ...(await readCurrentStatus(ledger, state)) })
  }
  return childRuns
}

function toData(shown: ShownRun, story: RunStory, turn: number | undefined): object {
  const { state, outline, maxSeq, waits, statusView, wakeAt, now, childRuns, inbox } = shown
  const { runId, agent, definition, phase, seq, epoch, totals, limits, cancel, metLimit } = state
  const { sessionId, sessionPlace, parent } = state
  const { startedAt, lastAt } = toRunTimes(state)
  const { turns, toolCalls, children, usage, costUsd } = totals
  const isAsked = (each: { readonly turn: number }): boolean => turn === undefined || each.turn === turn
  return {
    runId,
    agent,
    agents: outline.agents,
    model: definition.model,
    sessionId,
    sessionPlace,
    parent,
    ...statusView,
    ...(wakeAt !== undefined && { wakeAt: formatTime(wakeAt) }),
    now,
    phase,
    turn: state.turn,
    seq,
    maxSeq,
    epoch,
    startedAt: formatTime(startedAt),
    lastEventAt: formatTime(lastAt),
    todo: outline.todo?.items,
    limits,
    cancel,
    metLimit,
    turns,
    toolCalls,
    children,
    usage,
    costUsd,
    tally: toTally(outline),
    removedFrom: state.removedFrom,
    pendingApprovals: waits.approvals,
    deferredCalls: waits.deferred,
    openCalls: listOpenCalls(state),
    childRuns,
    inbox,
    messages: listRecordedMessages(state),
    request: rebuildRequest(state),
    story: story.parts.filter(isAsked),
    calls: story.calls.filter(isAsked),
  }
}

/** Returns the messages without the placeholders for calls that have no result yet. */
function listRecordedMessages(state: RunState): readonly Message[] {
  const open = new Set(listOpenCalls(state).map(({ toolCallId }) => toolCallId))
  return toTranscript(state).flatMap((message): readonly Message[] => {
    if (message.role !== 'tool') return [message]
    const results = message.results.filter(({ toolCallId }) => !open.has(toolCallId))
    return results.length === 0 ? [] : [{ ...message, results }]
  })
}

/** The exact request as JSON, under a line that says whether it was sent. */
function formatRequest(state: RunState, paint: Paint): string {
  const { model, request, requestDigest, additions = [] } = rebuildRequest(state)
  const which = `${model.provider} ${model.modelId}`
  const head =
    requestDigest === undefined
      ? `No model call is under way at this event. One to ${which} would carry this, unless the agent's prepareTurn says otherwise:`
      : `Sent to ${which}, digest ${requestDigest}:`
  const more = additions.map(
    (addition) =>
      `The adapter's options ${addition.replaces ? 'replace' : 'add'} ${formatAddition(addition)}. Its value is not shown here.`,
  )
  return `${[paint('bold', head), ...more].join('\n')}\n${JSON.stringify(request, undefined, 2)}\n`
}
