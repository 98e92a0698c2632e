import { describe, expect, it } from 'vitest'
import { observeResponse } from '../src/shared/body.ts'

/** A response whose body stays open after its pieces. */
function openResponse(...pieces: readonly Uint8Array[]): Response {
  return new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece)
      },
    }),
  )
}

describe('an observed response', () => {
  it('does not say that its body ended where its reader cancels it', async () => {
    let endings = 0
    const pieces: Uint8Array[] = []
    const response = observeResponse(openResponse(new Uint8Array([1])), {
      onBytes: (bytes) => pieces.push(bytes),
      onEnd: () => endings++,
    })
    const reader = response.body?.getReader()
    await reader?.read()
    const next = reader?.read()
    await reader?.cancel('enough')
    expect((await next)?.done).toBe(true)
    expect(pieces).toHaveLength(1)
    expect(endings).toBe(0)
  })

  it('says that its body ended where it did', async () => {
    let endings = 0
    const response = observeResponse(new Response('whole'), { onBytes: () => {}, onEnd: () => endings++ })
    expect(await response.text()).toBe('whole')
    expect(endings).toBe(1)
  })
})
