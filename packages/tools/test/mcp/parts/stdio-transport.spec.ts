import * as sdk from '@modelcontextprotocol/client'
import { type Transport } from '@modelcontextprotocol/client'
import type { Json } from '@tallystick/core/vocabulary'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createStdioTransport, keepStderrTail } from '../../../src/mcp/server-process.ts'
import { connect } from '../connected.ts'
import { shellServer } from '../servers/shell-server.ts'

// What a client hears of the lines of a process, and what happens to one that writes too long a line.

/** A transport to a script of the shell, and what is heard of it. */
async function started(script: string, { isHeard = true } = {}) {
  const transport = createStdioTransport(
    {
      ...{ command: '/bin/sh', args: ['-c', script], env: {}, platform: process.platform },
      maxMessageBytes: 1_000,
    },
    sdk,
    manualClock(),
    { add: () => {}, remove: () => {}, close: async () => {} },
  )
  const heard: unknown[] = []
  const closed = Promise.withResolvers<void>()
  const all: Pick<Transport, 'onmessage' | 'onerror'> = {
    onmessage: (message) => void heard.push(message),
    onerror: (error) => void heard.push(error.name),
  }
  Object.assign(transport, isHeard && all, { onclose: () => closed.resolve() })
  onTestFinished(() => transport.close())
  await transport.start()
  return { transport, heard, closed: closed.promise }
}

const message = (method: string): Json => ({ jsonrpc: '2.0', method })
const line = (method: string): string => `${JSON.stringify(message(method))}\n`

describe('the lines of a server', () => {
  it('given one that holds no message, then that is reported, and the next one is heard', async () => {
    const script = `printf '%s' '${line('one')}hello\n{"jsonrpc":"1.0"}\n${line('two')}'`
    const { heard, closed } = await started(script)
    await closed
    expect(heard).toEqual([message('one'), expect.stringMatching(/Error$/), message('two')])
    // Nothing is thrown where nothing listens.
    const { closed: other } = await started(script, { isHeard: false })
    await other
  })

  it('given one that is longer than messages may be, then the process is ended, and says why', async () => {
    const { transport, heard, closed } = await started(
      `printf '%s' '${line('one')}${'x'.repeat(1_001)}'; read -r line`,
    )
    await closed
    expect(heard.at(-1)).toMatch(/Error$/)
    expect(transport.process.exit()).toBe('a message of it was longer than 1000 bytes')
    const { transport: other, closed: ended } = await started(`exit 3`)
    await ended
    expect(other.process.exit()).toBe('exit code 3')
  })

  it.each([
    ['in one piece', String.raw`printf '\357\273\277'`],
    ['byte by byte', String.raw`printf '\357'; printf '\273'; printf '\277'`],
  ])('given a mark of UTF-8 before them, %s, then all are heard', async (_, mark) => {
    const { heard, closed } = await started(`${mark}; printf '%s' '${line('one')}${line('two')}'`)
    await closed
    expect(heard).toEqual([message('one'), message('two')])
  })

  it('given UTF-16, then the process is ended, and says why', async () => {
    const { transport, closed } = await started(String.raw`printf '\377\376{\0'; read -r line`)
    await closed
    expect(transport.process.exit()).toBe('its output is UTF-16, and messages are UTF-8: have it write UTF-8')
  })

  it('given progress and the answer in one piece, then the progress is heard, too', async () => {
    const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}\\n`
    const answer = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\\n`
    const server = shellServer({
      tools: { work: `printf '${progress}${progress}${answer}' "$id" 1 "$id" 2 "$id"` },
    })
    const manager = await connect({ own: server })
    const reports: Json[] = []
    const onProgress = (data: Json): void => void reports.push(data)
    expect(await manager.call('own', 'work', {}, { onProgress })).toEqual([])
    expect(reports).toEqual([{ progress: 1 }, { progress: 2 }])
  })

  it('given a server that writes too long a message, then it has failed, and its faults say so', async () => {
    const server = shellServer({ tools: { work: 'answer' } }, { maxMessageBytes: 1_000 })
    const long = { ...server, args: ['-c', `printf '%s' '${'x'.repeat(1_001)}'; read -r line`] }
    const manager = await connect({ own: long })
    expect(manager.servers).toMatchObject([
      { state: 'failed', faults: ['its process ended (a message of it was longer than 1000 bytes)'] },
    ])
  })
})

// What is kept of the standard error of a server.

/** What is kept of these chunks. */
function kept(...chunks: readonly string[]): string {
  const tail = keepStderrTail()
  for (const chunk of chunks) tail.write(Buffer.from(chunk))
  return tail.text()
}

describe('the end of what a server wrote to its standard error', () => {
  it('given nothing, then it is empty; given lines, then they are kept without the space around them', () => {
    expect(kept()).toBe('')
    expect(kept(' \n', ' one\n', 'two \n\n')).toBe('one\ntwo')
  })

  it('given a chunk that is longer than 8 kB, then its last lines are kept, and none that has lost its beginning', () => {
    expect(kept(`${'x'.repeat(10_000)}\none\ntwo`)).toBe('one\ntwo')
    expect(kept(`${'x'.repeat(10_000)}\none\ntwo`, '')).toBe('one\ntwo')
    expect(kept('before', `${'x'.repeat(10_000)}\none\n`, 'two')).toBe('one\ntwo')
  })

  it('given chunks that are longer together, then the same', () => {
    expect(kept('x'.repeat(5_000), `${'x'.repeat(5_000)}\none\ntwo`)).toBe('one\ntwo')
    expect(kept(`${'x'.repeat(5_000)}\none\n`, 'y'.repeat(3_186), '\n', 'two')).toBe(
      `${'y'.repeat(1_496)}\ntwo`,
    )
  })

  it('given just 8 kB, then nothing is lost but what is before the last 1500 characters', () => {
    const shown = kept(`${'x'.repeat(8_188)}\nend`)
    expect(shown).toBe(`${'x'.repeat(1_496)}\nend`)
    expect(kept(`${'x'.repeat(8_189)}\nend`)).toBe('end')
    expect(kept('x', `${'x'.repeat(8_188)}\nend`)).toBe('end')
  })

  it('given a chunk, when its bytes are used again, then what is kept stays the same', () => {
    const tail = keepStderrTail()
    const chunk = Buffer.from('kept')
    tail.write(chunk)
    chunk.fill('x')
    expect(tail.text()).toBe('kept')
  })
})
