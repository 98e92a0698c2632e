import { namedTextOfError } from '../../vocabulary/values/error-text.ts'
import { ProviderError } from '../../vocabulary/errors.ts'
import type { Cancel, Host } from '../../ports/clock.ts'
import { GuardedSubscriber } from './guarded-subscriber.ts'
import type { ModelTimeouts } from '../agent/agent.ts'
import { UnfitReply, type OutputStage } from '../output/output-stage.ts'
import type { Model } from '../../ports/model.ts'
import type { ModelFailure } from '../../vocabulary/model/failure.ts'
import type { ModelRequest } from '../../vocabulary/model/model-request.ts'
import { failure as failureSchema } from '../../vocabulary/events/event-parts-schema.ts'
import { faultOf } from '../../vocabulary/values/schema.ts'
import { isPlainPiece, modelSignalSchema, type PieceSignal } from '../../vocabulary/signals/signal-schema.ts'
import type { ModelSignal, Signal, StreamedSignal } from '../../vocabulary/signals/signal.ts'

/** Which model call the signals are of. */
export interface ModelCall {
  readonly model: Model
  readonly request: ModelRequest
  readonly turn: number
  readonly attempt: number
  readonly timeouts?: ModelTimeouts
  /** What the reply is shown through. */
  readonly output?: OutputStage | undefined
  /** Takes an error of the application's code in `output`, after which nothing of the call is posted. */
  readonly onFault?: (error: unknown) => void
}

/**
 * Calls the model and posts what it reports. Whatever the adapter does, exactly one of `model_finished` and
 * `model_failed` is posted, last; unless the call is given up first by what this answers, which closes the connection.
 */
export function startModelCall(
  { model, request, turn, attempt, timeouts = {}, output, onFault }: ModelCall,
  { clock, report }: Pick<Host, 'clock' | 'report'>,
  post: (signal: Signal) => void,
): () => void {
  let ended = false
  const { idleMs, totalMs } = timeouts
  let stopIdle: Cancel | undefined
  let stopTotal: Cancel | undefined
  const end = (): void => {
    ended = true
    stopIdle?.()
    stopTotal?.()
  }
  const fail = (failure: ModelFailure): void => {
    if (ended) return
    end()
    post({ type: 'model_failed', turn, attempt, failure })
  }
  const giveUp = (what: string): void => {
    fail({ class: 'timeout', message: `${model.modelId} was given up: ${what}.`, retryable: true })
    subscriber.unsubscribe()
  }
  const watch = (): void => {
    stopIdle?.()
    if (idleMs === undefined || ended) return
    stopIdle = clock.schedule(idleMs, () => giveUp(`it reported nothing for ${idleMs} ms`))
  }
  const shownSignals = (signal: ModelSignal): readonly StreamedSignal[] | undefined => {
    try {
      return output?.take(signal) ?? [reported(signal)]
    } catch (error) {
      if (error instanceof UnfitReply) fail(brokenAdapter(model, error.message))
      else {
        end()
        onFault?.(error)
      }
      subscriber.unsubscribe()
      return undefined
    }
  }
  const subscriber = new GuardedSubscriber<ModelSignal>(
    {
      next: (signal) => {
        if (ended) return
        if (output === undefined && isPlainPiece(signal)) {
          if (idleMs !== undefined) watch()
          return post(pieceOf(signal, turn, attempt))
        }
        const fault = signalFault(signal)
        if (fault) return fail(brokenAdapter(model, fault))
        const shown = output ? shownSignals(signal) : [reported(signal)]
        if (shown === undefined) return
        if (signal.type === 'model_finished') end()
        else if (idleMs !== undefined) watch()
        for (const each of shown) post({ ...each, turn, attempt })
      },
      error: (error: unknown) => fail(failureOf(error, model)),
      complete: () => fail(brokenAdapter(model, 'it completed without model_finished')),
    },
    (error) => report(error, `The adapter of the model ${model.modelId} threw when its call was abandoned`),
  )
  watch()
  if (totalMs !== undefined)
    stopTotal = clock.schedule(totalMs, () => giveUp(`it took longer than ${totalMs} ms`))
  try {
    if (!subscriber.follow(model.stream(request, { clock })))
      fail(brokenAdapter(model, 'its stream answered no Observable'))
  } catch (error) {
    fail(failureOf(error, model))
  }
  return () => {
    end()
    subscriber.unsubscribe()
  }
}

/** A piece as it is posted: frozen, with the fields that a piece has and no others. */
function pieceOf(piece: PieceSignal, turn: number, attempt: number): Signal {
  const { type, text } = piece
  // Zero loses its sign.
  const part = piece.part + 0
  return Object.freeze(
    type === 'model_tool_input'
      ? { type, part, name: piece.name, text, turn, attempt }
      : { type, part, text, turn, attempt },
  )
}

/** A report without what only `outputStream` may add to it. */
function reported(signal: ModelSignal): StreamedSignal {
  if (!('written' in signal)) return signal
  const { written: _foreign, ...own } = signal as StreamedSignal & { readonly written?: unknown }
  return own
}

/** Returns why the ledger cannot record a report; adapters may be written without a compiler. */
function signalFault(signal: ModelSignal): string | undefined {
  if (isPlainPiece(signal)) return undefined
  const fault = faultOf(modelSignalSchema, signal)
  if (fault === undefined) return undefined
  const type = typeof signal?.type === 'string' ? signal.type : 'something'
  return `it reported ${type} with a fault at ${fault.path}: ${fault.what}`
}

function failureOf(error: unknown, model: Model): ModelFailure {
  if (error instanceof ProviderError) return soundFailure(error.toFailure(), model)
  return brokenAdapter(model, `it threw ${namedTextOfError(error)}`)
}

/** Returns the failure as the ledger can record it: without invalid numbers. */
function soundFailure({ retryAfterMs, status, ...rest }: ModelFailure, model: Model): ModelFailure {
  const known = {
    ...rest,
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
    ...(Number.isFinite(status) && { status }),
  }
  const fault = faultOf(failureSchema, known)
  if (fault)
    return brokenAdapter(model, `it threw a ProviderError with a fault at ${fault.path}: ${fault.what}`)
  return known
}

function brokenAdapter({ provider, api }: Model, what: string): ModelFailure {
  const message = `The adapter for ${provider} ${api} broke its contract: ${what}.`
  return { class: 'protocol', message, retryable: false }
}
