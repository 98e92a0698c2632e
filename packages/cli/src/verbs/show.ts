import type { Ledger, RunId, RunState, RuntimeEvent, Tally } from '@tallystick/core'
import { pendingApprovals, tallyOf, transcript } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { CommandError, exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'
import type { Paint } from '../view/paint.ts'
import { counted, tallyText, usageText } from '../view/run-ending.ts'
import { runStatus, statusText } from '../view/run-status.ts'
import { table } from '../view/table.ts'
import { transcriptText } from '../view/transcript-text.ts'

/** What `show` was given. */
export interface ShowOptions {
  readonly ledger: string
  readonly run: string
  /** The `seq` that the run is shown at. */
  readonly at?: number
}

/** `show`: the state of a run and what its model was shown, now or right behind an event. */
export function show(
  context: CommandContext,
  { ledger: ledgerPath, run, at }: ShowOptions,
): Promise<ExitCode> {
  const { programName, paint } = context
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
    const state = await foldTo(ledger, runId, at)
    const tally = await tallyTo(ledger, runId, state.seq)
    const shown = { state, tally, seqMax }
    await context.print(context.json ? `${JSON.stringify(asData(shown))}\n` : asText(shown, paint))
    return exitCodes.ok
  })
}

/** A run at one of its events. */
interface Shown {
  readonly state: RunState
  readonly tally: Tally
  /** The run's last event. */
  readonly seqMax: number
}

async function tallyTo(ledger: Ledger, runId: RunId, toSeq: number): Promise<Tally> {
  const halves: RuntimeEvent[] = []
  for await (const event of ledger.read(runId, { toSeq })) {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
  }
  return tallyOf(halves)
}

function asData({ state, tally, seqMax }: Shown): object {
  const { runId, agent, definition, phase, turn, seq, epoch, totals, limits, cancel, metLimit } = state
  return {
    ...{ runId, agent, model: definition.model, ...runStatus(state), phase, turn, seq, seqMax, epoch },
    ...{ startedAt: new Date(state.startedAt).toISOString(), limits, cancel, metLimit },
    ...{ turns: totals.turns, toolCalls: totals.toolCalls, usage: totals.usage, costUsd: totals.costUsd },
    ...{ tally, pendingApprovals: pendingApprovals(state), messages: transcript(state) },
  }
}

function asText({ state, tally, seqMax }: Shown, paint: Paint): string {
  const { turns, toolCalls, usage } = state.totals
  const rows = [
    ['run', state.runId],
    ['agent', `${state.agent}, model ${state.definition.model.modelId}`],
    ['status', statusText(runStatus(state))],
    ['phase', `${state.phase}, turn ${state.turn}, event ${state.seq} of ${seqMax}, writer ${state.epoch}`],
    ['started', new Date(state.startedAt).toISOString()],
    ['used', `${counted(turns, 'turn')}, ${counted(toolCalls, 'tool call')}, ${usageText(usage)}`],
    ['tally', tallyText(tally)],
    ...pendingApprovals(state).map(({ name, toolCallId, input }) => [
      'waiting',
      `${name} ${toolCallId} ${JSON.stringify(input)}`,
    ]),
  ]
  return `${table(rows)}\n${transcriptText(transcript(state), paint)}`
}
