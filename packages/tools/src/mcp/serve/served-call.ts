import { randomUUID } from 'node:crypto'
import type { Tool } from '@tallystick/core'
import {
  type CallVerdict,
  type Json,
  type JsonObject,
  parseRunId,
  type ToolRun,
  type ToolSignal,
  toolCallIdOf,
} from '@tallystick/core/vocabulary'
import { Observable, ReplaySubject } from 'rxjs'
import type { Timers } from '../../built-in/timers.ts'
import { type Ending, textEnding } from '../../execution/outcome.ts'

/** A call that is checked, and that a person may have to approve. */
export interface ServedCall {
  readonly tool: string
  readonly input: JsonObject
  /** Why the tool asks, where it says so. */
  readonly reason?: string
}

/** What one call of a client comes with. */
export interface ServedCallParts {
  readonly input: JsonObject
  readonly signal: AbortSignal
  readonly progress: (data: Json) => void
  /** By which the client knows the call again; a new one where it gave none. */
  readonly idempotencyKey?: string | undefined
  readonly context: unknown
  readonly timers: Timers
  /** Decides where a tool asks for approval. Without it such calls are refused. */
  readonly approve?: ((call: ServedCall) => boolean | Promise<boolean>) | undefined
}

/** Makes one call of a tool for a client: checks it, asks where the tool asks, runs it, and stops it at its time. */
export async function servedCall(tool: Tool<unknown>, parts: ServedCallParts): Promise<Ending> {
  const { input, signal, context, idempotencyKey = randomUUID() } = parts
  const runId = parseRunId(randomUUID())
  if (runId === undefined) throw new Error('A UUID is no run id.')
  const place = { runId, turn: 1, toolCallId: toolCallIdOf(runId, 1, 1, 1), context }
  const refusal = await refusalOf(await tool.check(input, place), tool.name, parts)
  if (refusal) return refusal
  if (signal.aborted) return textEnding('cancelled', 'The call was cancelled. Nothing was run.')
  return await ended(tool, { ...place, input, attempt: 1, idempotencyKey }, parts)
}

async function refusalOf(
  verdict: CallVerdict,
  tool: string,
  { input, approve }: ServedCallParts,
): Promise<Ending | undefined> {
  switch (verdict.kind) {
    case 'run':
      return undefined
    case 'refuse':
      return textEnding(verdict.outcome, verdict.text)
    case 'ask': {
      const { reason } = verdict
      const isApproved = (await approve?.({ tool, input, ...(reason !== undefined && { reason }) })) === true
      if (isApproved) return undefined
      const why = reason === undefined ? '' : ` (${reason})`
      return textEnding(
        'denied',
        `A person has to approve this call${why}, and no person did. Nothing was run.`,
      )
    }
  }
}

function ended(
  tool: Tool<unknown>,
  run: Omit<ToolRun, 'cancelled$'>,
  { signal, progress, timers }: ServedCallParts,
): Promise<Ending> {
  return new Promise((resolve) => {
    const cancelled$ = new ReplaySubject<string>()
    let hasEnded = false
    let cancelQuietTimer = (): void => {}
    const stop = (): void => cancelled$.next('the client cancelled the call')
    const giveUp = (reason: string): void => {
      // Before the tool hears of it: what it still says is too late.
      end(textEnding('timed_out', 'The tool was given up because it took too long.'))
      cancelled$.next(reason)
    }
    const cancelTimer =
      tool.timeoutMs === undefined
        ? (): void => {}
        : timers.schedule(tool.timeoutMs, () => giveUp('The tool took too long.'))
    const waitForProgress = (): void => {
      cancelQuietTimer()
      if (tool.quietMs === undefined || hasEnded) return
      cancelQuietTimer = timers.schedule(tool.quietMs, () =>
        giveUp('The tool reported no progress for too long.'),
      )
    }
    waitForProgress()
    const end = (ending: Ending): void => {
      hasEnded = true
      cancelTimer()
      cancelQuietTimer()
      signal.removeEventListener('abort', stop)
      resolve(ending)
    }
    signal.addEventListener('abort', stop)
    signalsOf(tool, { ...run, cancelled$ }).subscribe({
      next: (report) => {
        if (report.type === 'tool_progressed') {
          waitForProgress()
          progress(report.data)
        } else if (report.type === 'tool_ended') end(report)
        else
          end(
            textEnding(
              'failed',
              `The work continues elsewhere (${report.externalId}), and no client hears of its end.`,
            ),
          )
      },
      error: (error: unknown) => end(textEnding('failed', `The tool failed: ${String(error)}`)),
      complete: () => end(textEnding('failed', 'The tool ended without a result.')),
    })
  })
}

/** What a tool reports, also where it throws instead of reporting. */
function signalsOf(tool: Tool<unknown>, run: ToolRun): Observable<ToolSignal> {
  return new Observable((subscriber) => tool.run(run).subscribe(subscriber))
}
