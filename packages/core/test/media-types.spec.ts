import { createRuntime, defineAgent, memoryLedger, type Tool } from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import type { ResultPart, UserPart } from '@tallystick/core/vocabulary'
import { of } from 'rxjs'
import { describe, expect, it } from 'vitest'

const base64 = (bytes: readonly number[]): string => Buffer.from(bytes).toString('base64')
const bytesOf = (text: string): readonly number[] => [...Buffer.from(text, 'latin1')]

/** The first bytes of files of each type, and some that follow. */
const files = {
  'image/png': base64([0x89, ...bytesOf('PNG\r\n\u001a\n'), 0, 0, 0, 13]),
  'image/jpeg': base64([0xff, 0xd8, 0xff, 0xe0, 0, 16, ...bytesOf('JFIF')]),
  'image/gif': base64(bytesOf('GIF89a\u0001\u0000')),
  'image/webp': base64([...bytesOf('RIFF'), 26, 1, 2, 3, ...bytesOf('WEBPVP8L')]),
  'audio/wav': base64([...bytesOf('RIFF'), 255, 254, 2, 3, ...bytesOf('WAVEfmt ')]),
  'application/pdf': base64(bytesOf('%PDF-1.7\n')),
} as const
type Type = keyof typeof files

const partOf = (declared: string, type: Type): UserPart & ResultPart => ({
  type: declared.startsWith('image/') ? 'image' : 'file',
  mediaType: declared,
  data: files[type],
})

/** What a model is shown of parts that a user gave first, then beside a run, and that a tool answered. */
async function shown(parts: readonly (UserPart & ResultPart)[]) {
  const clock = manualClock()
  const look: Tool = {
    ...testTool({ name: 'look' }),
    run: () => of({ type: 'tool_ended', outcome: 'success', content: parts }),
  }
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Seen.' },
    { text: 'So.' },
  ])
  const agent = defineAgent({ name: 'viewer', instructions: 'Look.', model, tools: [look] })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } }).run(agent, parts)
  await run.queue(parts)
  await waitUntilSettled(clock, run.result)
  const [asked, , answered, , queued] = model.requests.at(-1)?.messages ?? []
  return {
    asked: asked?.role === 'user' && asked.parts,
    answered: answered?.role === 'tool' && answered.results[0]?.content,
    queued: queued?.role === 'user' && queued.parts,
  }
}

describe('an image or a file whose bytes are of another type than it says', () => {
  it.each<readonly [string, Type]>([
    ['image/jpeg', 'image/png'],
    ['image/png', 'image/jpeg'],
    ['image/jpg', 'image/jpeg'],
    ['image/png', 'image/webp'],
    ['image/webp', 'image/gif'],
    ['image/png', 'application/pdf'],
    ['application/pdf', 'image/png'],
    ['audio/mpeg', 'audio/wav'],
  ])(
    'given %s for %s, when it comes from a user or a tool, then the model is shown its own type',
    async (declared, type) => {
      const corrected = [partOf(type, type)]
      expect(await shown([partOf(declared, type)])).toEqual({
        asked: corrected,
        answered: corrected,
        queued: corrected,
      })
    },
  )

  it('given bytes that tell no type, or the right one, when they come in, then they stay as they are', async () => {
    const parts: readonly (UserPart & ResultPart)[] = [
      { type: 'image', mediaType: 'image/heic', data: base64([0, 0, 0, 24, ...bytesOf('ftypheic')]) },
      { type: 'file', mediaType: 'text/plain', name: 'a.txt', data: base64(bytesOf('RIFF')) },
      { type: 'image', mediaType: 'image/png', detail: 'low', data: files['image/png'] },
      { type: 'image', mediaType: 'image/png', url: 'https://example.com/a.jpg' },
    ]
    expect(await shown(parts)).toEqual({ asked: parts, answered: parts, queued: parts })
  })

  it('given a name and a detail, when only the type is corrected, then they stay', async () => {
    const { asked } = await shown([
      { type: 'image', mediaType: 'image/jpeg', data: files['image/png'], detail: 'high' },
    ])
    expect(asked).toEqual([
      { type: 'image', mediaType: 'image/png', data: files['image/png'], detail: 'high' },
    ])
  })
})
