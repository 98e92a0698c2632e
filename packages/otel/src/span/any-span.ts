import { option, type OptionCheck } from '@tallystick/core/kit'
import type { Span } from './span.ts'

/** A span that has ended. */
export const anySpan: OptionCheck = option.valueThat(
  'an ended span, such as recordedSpans yields',
  (value) => {
    const { attributes, startedAt, endedAt, events, links } = Object(value) as Partial<Span>
    return (
      typeof attributes === 'object' &&
      attributes !== null &&
      typeof startedAt === 'number' &&
      typeof endedAt === 'number' &&
      Array.isArray(events) &&
      Array.isArray(links)
    )
  },
)
