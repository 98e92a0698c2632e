import type { Message, ModelRequest } from '@tallystick/core'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import type { Loose } from './loose.ts'

/** How a wire makes requests of histories. */
export interface Wire<Settings> {
  readonly requests: fc.Arbitrary<ModelRequest>
  readonly settings: fc.Arbitrary<Settings>
  /** Makes the body of a request. */
  readonly renderer: (given: Settings) => (request: ModelRequest) => Loose
  /** The rules of the vendor that a body breaks. */
  readonly broken: (body: Loose, given: Settings) => string[]
}

/** Claims of the requests of every wire. */
export function testRequests<Settings>({ requests, settings: all, renderer, broken }: Wire<Settings>): void {
  it('breaks no rule of the vendor', () => {
    fc.assert(
      fc.property(requests, all, (request, given) => {
        expect(broken(renderer(given)(request), given)).toEqual([])
      }),
      { numRuns: tries(2000) },
    )
  })

  it('breaks none when the history ends anywhere between a reply’s results and the next reply', () => {
    fc.assert(
      fc.property(requests, all, fc.nat({ max: 20 }), (request, given, cut) => {
        fc.pre(request.messages[cut - 1]?.role !== 'assistant' || request.messages[cut]?.role !== 'tool')
        const messages = request.messages.slice(0, cut)
        expect(broken(renderer(given)({ ...request, messages }), given)).toEqual([])
      }),
      { numRuns: tries(1000) },
    )
  })

  it('changes nothing of what was passed in', () => {
    fc.assert(
      fc.property(requests, all, (request, given) => {
        const before = structuredClone(request)
        renderer(given)(request)
        expect(request).toEqual(before)
      }),
      { numRuns: tries(300) },
    )
  })
}

/** The first request that is not the beginning of the whole. */
export function begunOtherwise(
  messages: readonly Message[],
  render: (messages: readonly Message[]) => Loose[],
): number | undefined {
  const whole = render(messages)
  for (const [place, message] of messages.entries()) {
    // A call is made when the user, or a tool, has spoken.
    if (message.role === 'assistant') continue
    const before = render(messages.slice(0, place + 1))
    if (JSON.stringify(whole.slice(0, before.length)) !== JSON.stringify(before)) return place
  }
  return undefined
}
