import { describe, expect, it } from 'vitest'
import { createErroneousReplyError } from '../src/ai-sdk/failure.ts'
import { cutsReply, requireReason, toStopReason } from '../src/ai-sdk/stream.ts'

const words = (list: string): readonly string[] => list.trim().split(/\s+/)

describe('an end of a reply from the AI SDK', () => {
  it.each([
    ['stop', undefined, 'end'],
    ['length', undefined, 'max_tokens'],
    ['content-filter', undefined, 'content_filtered'],
    ['tool-calls', undefined, 'tool_use'],
    ['weary', undefined, 'other'],
    ['toString', 'toString', 'other'],
    ['stop', 'refusal', 'refused'],
    ['stop', 'pause_turn', 'paused'],
    ['other', 'compaction', 'compacted'],
    ['length', 'model_context_window_exceeded', 'context_exceeded'],
  ])('%s (%s) is %s', (unified, raw, reason) => {
    expect(toStopReason(unified, raw, false)).toBe(reason)
    expect(toStopReason(unified, raw, true)).toBe(reason === 'end' ? 'tool_use' : reason)
  })

  it('cuts the reply, or does not', () => {
    const all = words(
      'end tool_use max_tokens context_exceeded refused content_filtered paused other',
    ) as never[]
    expect(all.filter(cutsReply)).toEqual(words('max_tokens context_exceeded refused content_filtered'))
  })

  it('counts where something proves it', () => {
    const proof = { endOfStreamIsEnd: false, endMissing: false, unproven: false }
    expect(requireReason('stop', undefined, proof)).toBe('stop')
    expect(requireReason('other', 'weary', proof)).toBe('other')
    for (const [unified, raw, more] of [
      ['interrupted', undefined, {}],
      ['interrupted', 'x', {}],
      ['other', undefined, {}],
      ['stop', 'x', { endMissing: true }],
      ['error', 'x', { endMissing: true }],
    ] as const) {
      const given = { ...proof, ...more }
      expect(() => requireReason(unified, raw, given)).toThrow('The stream ended before the reply did')
      expect(requireReason(unified, raw, { ...given, endOfStreamIsEnd: true })).toBe('stop')
      expect(() => requireReason(unified, raw, { ...given, endOfStreamIsEnd: true, unproven: true })).toThrow(
        'The stream ended before the reply did',
      )
    }
    expect(() => requireReason('error', 'boom', { ...proof, endOfStreamIsEnd: true })).toThrow('(boom)')
    expect(createErroneousReplyError(undefined)).toMatchObject({ class: 'server', retryable: true })
  })
})
