import { formatFault } from '../values/schema.ts'
import type { Observer } from 'rxjs'
import { failure as failureSchema } from '../events/event-parts.ts'
import type { ModelRequest } from '../events/model-request.ts'
import { type ModelSignal, modelSignalSchema, type Signal, type StreamedSignal } from '../events/signals.ts'
import { type ModelFailure, ProviderError } from '../values/errors.ts'
import type { Cancel, Host } from '../values/host.ts'
import { GuardedSubscriber } from '../values/observables.ts'
import { formatNamedError } from '../values/text.ts'
import type { Model, ModelTimeouts } from './model.ts'
import { type OutputStage, UnfitReply } from './output.ts'

export interface ModelCall {
  readonly model: Model
  readonly request: ModelRequest
  readonly turn: number
  readonly attempt: number
  readonly timeouts?: ModelTimeouts
  /** The transforms that the reply is shown through. */
  readonly output?: OutputStage | undefined
  /** Takes what no signal reports. */
  readonly owner?: ModelCallOwner
}

/** Takes what no signal of a model call reports. */
export interface ModelCallOwner {
  /** Takes an error of the application's code in `output`, after which nothing of the call is posted. */
  onFault(error: unknown): void
}

/**
 * Calls the model and posts its signals. Whatever the adapter does, exactly one of `model_finished` and `model_failed` is
 * posted, last, unless `stop` is called first, which closes the connection.
 */
export function startModelCall(
  call: ModelCall,
  host: Pick<Host, 'clock' | 'report'>,
  post: (signal: Signal) => void,
): { stop(): void } {
  return new ModelAttempt(call, host, post)
}

/**
 * A model call that is under way. It observes the reports of its model. A process may have thousands of them, so a call makes
 * its timers only where its timeouts ask for them.
 */
class ModelAttempt implements Observer<ModelSignal> {
  readonly #call: ModelCall
  readonly #host: Pick<Host, 'clock' | 'report'>
  readonly #post: (signal: Signal) => void
  readonly #reports: GuardedSubscriber<ModelSignal>
  readonly #idleMs: number | undefined
  #ended = false
  #stopIdle: Cancel | undefined
  #stopTotal: Cancel | undefined

  constructor(call: ModelCall, host: Pick<Host, 'clock' | 'report'>, post: (signal: Signal) => void) {
    const { model, request } = call
    const { clock } = host
    const { idleMs, totalMs } = call.timeouts ?? {}
    this.#call = call
    this.#host = host
    this.#post = post
    this.#idleMs = idleMs
    this.#reports = new GuardedSubscriber<ModelSignal>(this)
    this.#watch()
    if (totalMs !== undefined)
      this.#stopTotal = clock.schedule(totalMs, () => this.#giveUp(`it took longer than ${totalMs} ms`))
    try {
      if (!this.#reports.follow(model.stream(request, { clock })))
        this.#fail(toAdapterFailure(model, 'its stream did not return an Observable'))
    } catch (error) {
      this.#fail(toFailure(error, model))
    }
  }

  /** Gives it up: nothing that it reports counts any more. */
  stop(): void {
    this.#end()
    this.#reports.unsubscribe()
  }

  onCleanupFault(error: unknown): void {
    const { modelId } = this.#call.model
    this.#host.report(error, `The adapter of the model ${modelId} threw when its call was abandoned`)
  }

  next(signal: ModelSignal): void {
    if (this.#ended) return
    const { model, turn, attempt, output } = this.#call
    const fault = findSignalFault(signal)
    if (fault) return this.#fail(toAdapterFailure(model, fault))
    const shown = output ? this.#shownSignals(signal, output) : [toReported(signal)]
    if (shown === undefined) return
    if (signal.type === 'model_finished') this.#end()
    else this.#watch()
    for (const each of shown) this.#post({ ...each, turn, attempt })
  }

  error(error: unknown): void {
    this.#fail(toFailure(error, this.#call.model))
  }

  complete(): void {
    this.#fail(toAdapterFailure(this.#call.model, 'it completed without model_finished'))
  }

  #shownSignals(signal: ModelSignal, output: OutputStage): readonly StreamedSignal[] | undefined {
    try {
      return output.take(signal)
    } catch (error) {
      if (error instanceof UnfitReply) this.#fail(toAdapterFailure(this.#call.model, error.message))
      else {
        this.#end()
        this.#call.owner?.onFault(error)
      }
      this.#reports.unsubscribe()
      return undefined
    }
  }

  #fail(failure: ModelFailure): void {
    if (this.#ended) return
    this.#end()
    const { turn, attempt } = this.#call
    this.#post({ type: 'model_failed', turn, attempt, failure })
  }

  #giveUp(what: string): void {
    const message = `${this.#call.model.modelId} was given up: ${what}.`
    this.#fail({ class: 'timeout', message, retryable: true })
    this.#reports.unsubscribe()
  }

  /** Gives the call up if it reports nothing for too long from here on. */
  #watch(): void {
    const idleMs = this.#idleMs
    if (idleMs === undefined) return
    this.#stopIdle?.()
    if (this.#ended) return
    this.#stopIdle = this.#host.clock.schedule(idleMs, () =>
      this.#giveUp(`it reported nothing for ${idleMs} ms`),
    )
  }

  #end(): void {
    this.#ended = true
    this.#stopIdle?.()
    this.#stopTotal?.()
  }
}

/** A report without what only `outputStream` may add to it. */
function toReported(signal: ModelSignal): StreamedSignal {
  if (!('written' in signal)) return signal
  const { written: _foreign, ...own } = signal as StreamedSignal & { readonly written?: unknown }
  return own
}

/** Returns why the ledger cannot record a report; adapters may be written without a compiler. */
function findSignalFault(signal: ModelSignal): string | undefined {
  const fault = modelSignalSchema(signal)
  if (fault === undefined) return undefined
  const type = typeof signal?.type === 'string' ? signal.type : 'something'
  return `it reported ${type} that is not sound: ${formatFault(fault)}`
}

function toFailure(error: unknown, model: Model): ModelFailure {
  if (error instanceof ProviderError) return toSoundFailure(error.toFailure(), model)
  return toAdapterFailure(model, `it threw ${formatNamedError(error)}`)
}

/** Returns the failure as the ledger can record it: without invalid numbers. */
function toSoundFailure({ retryAfterMs, status, ...rest }: ModelFailure, model: Model): ModelFailure {
  const known = {
    ...rest,
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
    ...(Number.isFinite(status) && { status }),
  }
  const fault = failureSchema(known)
  if (fault)
    return toAdapterFailure(model, `it threw a ProviderError that is not sound: ${formatFault(fault)}`)
  return known
}

function toAdapterFailure({ provider, api }: Model, what: string): ModelFailure {
  const message = `The adapter for ${provider} ${api} broke its contract: ${what}.`
  return { class: 'protocol', message, retryable: false }
}
