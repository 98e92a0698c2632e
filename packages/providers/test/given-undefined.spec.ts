// A quirk that is `undefined` says what leaving it out says.
import { expect, it } from 'vitest'
import { allQuirks } from '../src/openai/options.ts'

it('a quirk that is undefined leaves what is known of the server', () => {
  const quirks = { streamUsage: undefined, callIds: undefined, maxStop: 8 }
  expect(allQuirks('mistral', quirks)).toEqual({ ...allQuirks('mistral', undefined), maxStop: 8 })
})
