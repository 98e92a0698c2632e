import type { ModelSignal } from '@tallystick/core'
import { defer, map, type Observable } from 'rxjs'

/** Something that a request asked for and that a wire cannot be told. The call goes out without it. */
export interface Warning {
  /** What was left out or changed. */
  readonly what: string
  /** One sentence, for people: names and places, never what was said. */
  readonly message: string
}

/** The sentences of the call that is being prepared at this moment: preparing is synchronous. */
let listening: Set<string> | undefined

/** Tells of each thing once, and each call of all that concerns it. */
export function warnOnce<Told extends Warning>(
  onWarning: ((warning: Told) => void) | undefined,
): (warning: Told) => void {
  const told = new Set<string>()
  return (warning) => {
    listening?.add(warning.message)
    if (onWarning === undefined || told.has(warning.message)) return
    told.add(warning.message)
    onWarning(warning)
  }
}

/** Collects what one call is warned of. */
export type Heeding = <T>(prepare: () => T) => T

/** A call whose first report says what it was warned of while it was prepared, so that it goes on record. */
export function withWarnings(call: (heeding: Heeding) => Observable<ModelSignal>): Observable<ModelSignal> {
  return defer(() => {
    const heard = new Set<string>()
    const heeding: Heeding = (prepare) => {
      const before = listening
      listening = heard
      try {
        return prepare()
      } finally {
        listening = before
      }
    }
    return call(heeding).pipe(
      map((signal) =>
        signal.type === 'model_started' && heard.size > 0 ? { ...signal, warnings: [...heard] } : signal,
      ),
    )
  })
}
