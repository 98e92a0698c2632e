import type { ModelSignal } from '@tallystick/core/vocabulary'
import { defer, map, type Observable } from 'rxjs'

/** Something that a request asked for and that a wire cannot express. The call goes out without it. */
export interface Warning {
  /** What was left out or changed. */
  readonly what: string
  /** One sentence, for people: names and places, never what was said. */
  readonly message: string
}

/** Reports a warning. */
export type Warn<Reported extends Warning> = (warning: Reported) => void

/** Reports each warning once for a model, to the option `onWarning`. */
export function warnOnce<Reported extends Warning>(onWarning: Warn<Reported> | undefined): Warn<Reported> {
  const reported = new Set<string>()
  return (warning) => {
    if (onWarning === undefined || reported.has(warning.message)) return
    reported.add(warning.message)
    onWarning(warning)
  }
}

/**
 * Makes a call with a `warn` of its own. The call's `model_started` carries every warning that the call reported
 * before, so that the warnings are recorded; `report` receives each warning as well.
 */
export function collectWarnings<Reported extends Warning>(
  report: Warn<Reported>,
  call: (warn: Warn<Reported>) => Observable<ModelSignal>,
): Observable<ModelSignal> {
  return defer(() => {
    const warnings = new Set<string>()
    const warn: Warn<Reported> = (warning) => {
      warnings.add(warning.message)
      report(warning)
    }
    return call(warn).pipe(
      map((signal) =>
        signal.type === 'model_started' && warnings.size > 0
          ? { ...signal, warnings: [...warnings] }
          : signal,
      ),
    )
  })
}
