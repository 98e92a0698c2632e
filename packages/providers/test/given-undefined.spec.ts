// A quirk that is `undefined` says what leaving it out says.
import { expect, it } from 'vitest'
import { resolveQuirks } from '../src/openai/options.ts'

it('a quirk that is undefined leaves what is known of the server', () => {
  const quirks = { streamUsage: undefined, callIds: undefined, maxStop: 8 }
  expect(resolveQuirks('mistral', quirks)).toEqual({ ...resolveQuirks('mistral', undefined), maxStop: 8 })
})
