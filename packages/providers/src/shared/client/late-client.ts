import type { ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { catchError, from, type Observable, switchMap, throwError } from 'rxjs'

/** How a model comes to its client. */
export interface LateClientOptions<Client> {
  /** A client of the user's own, which is there already. */
  readonly given: Client | undefined
  /** Makes the client, which is then kept. A failure is not kept. */
  readonly connect: () => Promise<Client>
}

/** One call, and the failure of a client that cannot be made. */
export interface LateCall<Client> {
  readonly over: (client: Client) => Observable<ModelSignal>
  readonly failure: (error: unknown) => ProviderError
}

/** Starts each call as soon as the client is there. A call that is given up before that sends nothing. */
export function lateClient<Client extends object>({
  given,
  connect,
}: LateClientOptions<Client>): (call: LateCall<Client>) => Observable<ModelSignal> {
  let client = given
  let coming: Promise<Client> | undefined
  const connected = async (): Promise<Client> => {
    try {
      return (client = await connect())
    } finally {
      coming = undefined
    }
  }
  return ({ over, failure }) => {
    if (client !== undefined) return over(client)
    coming ??= connected()
    return from(coming).pipe(
      catchError((error: unknown) => throwError(() => failure(error))),
      switchMap(over),
    )
  }
}
