// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import type { RuntimeEvent } from '@tallystick/core'
import { canonicalJson } from '@tallystick/core/vocabulary'

declare const event: RuntimeEvent
declare const events: readonly RuntimeEvent[]

/** What is declared as an interface is written without a cast. */
export const written: readonly string[] = [
  canonicalJson(event),
  canonicalJson(events),
  canonicalJson({ event }),
]

export const refused: readonly unknown[] = [
  // @ts-expect-error a date has methods, and would be written as an object without fields
  () => canonicalJson(new Date(0)),
  // @ts-expect-error so would a map
  () => canonicalJson({ counts: new Map([['a', 1]]) }),
  // @ts-expect-error JSON cannot carry a bigint
  () => canonicalJson({ count: 1n }),
]
