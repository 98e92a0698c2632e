import { describe, expect, it } from 'vitest'
import type { RunId } from '@tallystick/core'
import { computeDigest, parseRunId, parseToolCallId, deriveToolCallId } from '@tallystick/core/vocabulary'
import { deriveChildRunId, deriveIdempotencyKey, extractRunId } from '../src/values/ids.ts'

const runId = '01932f00-abcd-7123-8456-0123456789ab' as RunId
const callId = deriveToolCallId(runId, 2, 3, 14)

describe('an id', () => {
  it('of a run is a UUID in small letters, and nothing around it', () => {
    expect(parseRunId(runId)).toBe(runId)
    const others = [
      ...[runId.toUpperCase(), `${runId}0`, `0${runId}`, runId.slice(1), runId.replaceAll('-', '')],
      ...[`${runId}\n`, runId.replace('a', 'g'), '', '../x'],
    ]
    expect(others.filter((text) => parseRunId(text) !== undefined)).toEqual([])
  })

  it('of a tool call names its run, turn, attempt and place', () => {
    expect(callId).toBe('call_01932f00abcd712384560123456789ab_2_3_14')
    expect(parseToolCallId(callId)).toBe(callId)
    expect(extractRunId(callId)).toBe(runId)
    expect(deriveIdempotencyKey(runId, callId)).toBe(`${runId}_2_3_14`)
    const others = [
      ...[`x${callId}`, `${callId}x`, callId.replace('call_', ''), callId.replace('_14', ''), `${callId}_1`],
      ...[callId.replace('ab', 'AB'), callId.replace('01932', '1932'), callId.replace('_2_', '_-2_'), runId],
    ]
    expect(others.filter((text) => parseToolCallId(text) !== undefined)).toEqual([])
    expect(others.filter((text) => extractRunId(text) !== undefined)).toEqual([])
  })
})

describe('the id of a child run', () => {
  /** The ids of many calls, each with the digest that it is made of. */
  const children = Array.from({ length: 40 }, (_, index) => {
    const call = deriveToolCallId(runId, 1, 1, index + 1)
    return { id: deriveChildRunId(runId, call), digest: computeDigest(`${runId}_1_1_${index + 1}`) }
  })

  it('is a UUID of version 7 with the time of its parent, and the same at every attempt', () => {
    for (const { id, digest } of children) {
      const variant = ['8', '9', 'a', 'b'][Number.parseInt(digest[3] ?? '', 16) % 4] ?? ''
      expect(id).toBe(
        `01932f00-abcd-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`,
      )
      expect(parseRunId(id)).toBe(id)
    }
    expect(deriveChildRunId(runId, callId)).toBe(deriveChildRunId(runId, callId))
  })

  it('is another one for every call and every run', () => {
    expect(new Set(children.map(({ id }) => id)).size).toBe(40)
    expect(new Set(children.map(({ id }) => id[19]))).toEqual(new Set(['8', '9', 'a', 'b']))
    const other = '01932f00-abcd-7123-8456-0123456789ac' as RunId
    expect(deriveChildRunId(other, callId)).not.toBe(deriveChildRunId(runId, callId))
  })
})
