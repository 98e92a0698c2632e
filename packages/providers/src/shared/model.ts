import { type OptionalPackage } from '@tallystick/core/internal'
import { type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import type { MaxWebSearches, ModelContext, ModelRef, ModelSignal } from '@tallystick/core/vocabulary'
import { catchError, defer, from, map, Observable, of, type Subscriber, switchMap, throwError } from 'rxjs'
import type { WireFailures } from './failure.ts'
import {
  type RecordedOptions,
  describeOptions,
  type Warn,
  type Warning,
  type WireOptions,
} from './options.ts'
import { OwnSecrets } from './secrets.ts'

/** One call of a model. */
export interface ModelCall<Client, Reported extends Warning> {
  readonly client: Client
  readonly request: ModelRequest
  readonly context: ModelContext
  readonly subscriber: Subscriber<ModelSignal>
  /** Records what the wire cannot carry of this request. */
  readonly warn: Warn<Reported>
  readonly secrets: OwnSecrets
}

interface ModelDefinition<
  Options extends WireOptions,
  Client extends object,
  Reported extends Warning,
> extends ModelRef {
  readonly options: Options & { readonly onWarning?: Warn<Reported> | undefined }
  readonly recorded: RecordedOptions<Options>
  readonly failures: WireFailures
  readonly keepsState?: true
  readonly maxWebSearches?: MaxWebSearches
  /** A client that exists already, or how to make one at the first call. */
  readonly client: Client | ((secrets: OwnSecrets) => Promise<Client>)
  /** Starts a call. Returns how to stop it. */
  readonly start: (call: ModelCall<Client, Reported>) => () => void
}

/**
 * Makes a model of an adapter's parts. The client is made at the first call. What a request had to leave out is
 * recorded with the beginning of its reply, or with its failure if no reply began; `onWarning` gets each warning once.
 * Keys that the adapter sent are struck out of failures.
 */
export function createModel<Options extends WireOptions, Client extends object, Reported extends Warning>({
  options,
  recorded,
  failures,
  client: given,
  start,
  ...model
}: ModelDefinition<Options, Client, Reported>): Model {
  const secrets = new OwnSecrets(options)
  const reported = new Set<string>()
  let client = typeof given === 'function' ? undefined : given
  let connecting: Promise<Client> | undefined
  const connect = async (): Promise<Client> => {
    try {
      return (client = await (given as (secrets: OwnSecrets) => Promise<Client>)(secrets))
    } finally {
      // A failure is not kept.
      connecting = undefined
    }
  }
  return {
    ...model,
    ...describeOptions(options, recorded),
    stream: (request, context) =>
      defer(() => {
        const warnings = new Set<string>()
        let hasBegun = false
        const warn: Warn<Reported> = (warning) => {
          warnings.add(warning.message)
          if (options.onWarning === undefined || reported.has(warning.message)) return
          reported.add(warning.message)
          options.onWarning(warning)
        }
        const connected = client === undefined ? from((connecting ??= connect())) : of(client)
        return connected.pipe(
          catchError((error: unknown) =>
            throwError(() => failures.toProviderError(error, { now: context.clock.now() })),
          ),
          switchMap(
            (over) =>
              new Observable<ModelSignal>((subscriber) =>
                start({ client: over, request, context, subscriber, warn, secrets }),
              ),
          ),
          map((signal) => {
            if (signal.type !== 'model_started') return signal
            hasBegun = true
            const all = [...warnings, ...(signal.warnings ?? [])]
            return all.length === 0 ? signal : { ...signal, warnings: all }
          }),
          catchError((error: unknown) =>
            throwError(() => secrets.strikeFrom(hasBegun ? error : withWarnings(error, warnings))),
          ),
        )
      }),
  }
}

/** No reply began, so that the failure alone can tell what its request had left out. */
function withWarnings(error: unknown, warnings: ReadonlySet<string>): unknown {
  if (!(error instanceof ProviderError) || warnings.size === 0) return error
  const { message, ...failure } = error.toFailure()
  const text = [message, 'The request had gone out changed:', ...warnings].join(' ')
  return new ProviderError({ ...failure, message: text }, { cause: error.cause })
}

/** Throws `ConfigurationError` at once if a client would need a package that is not installed. */
export function createLazyClient<Client extends object, Module>(
  maker: string,
  sdk: OptionalPackage<Module>,
  { client }: { readonly client?: Client | undefined },
  make: (module: Module, secrets: OwnSecrets) => Client,
): Client | ((secrets: OwnSecrets) => Promise<Client>) {
  if (client !== undefined) return client
  sdk.require(maker)
  return async (secrets) => make(await sdk.load(maker), secrets)
}
