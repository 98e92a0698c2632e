// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import type { RuntimeEvent } from '@tallystick/core'
import { toCanonicalJson } from '@tallystick/core/vocabulary'

declare const event: RuntimeEvent
declare const events: readonly RuntimeEvent[]

/** What is declared as an interface is written without a cast. */
export const written: readonly string[] = [
  toCanonicalJson(event),
  toCanonicalJson(events),
  toCanonicalJson({ event }),
]

export const refused: readonly unknown[] = [
  // @ts-expect-error a date has methods, and would be written as an object without fields
  () => toCanonicalJson(new Date(0)),
  // @ts-expect-error so would a map
  () => toCanonicalJson({ counts: new Map([['a', 1]]) }),
  // @ts-expect-error JSON cannot carry a bigint
  () => toCanonicalJson({ count: 1n }),
]
