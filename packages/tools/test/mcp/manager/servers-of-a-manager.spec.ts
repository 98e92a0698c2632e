// What a manager offers of its servers: which of their tools, under which names, how they are, and how all of it ends.
import { joinText } from '@tallystick/core'
import { lastValueFrom, toArray } from 'rxjs'
import { type McpManager, mcpTools } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { toExposedName } from '../../../src/mcp/listing.ts'
import { connect } from '../connected.ts'
import { listed } from '../servers/changing-server.ts'
import { hello, scriptedServer } from '../servers/scripted-server.ts'

const old = { era: 'legacy' } as const

/** The URL of a server that lists tools of these names. */
async function listing(...names: readonly string[]): Promise<string> {
  const tools = names.map((name) => listed(name))
  const { url } = await scriptedServer({ 'tools/list': ({ say }) => say({ result: { tools } }) })
  return url
}

const names = ({ tools }: McpManager): readonly string[] => tools.map(({ name }) => name)

describe('the tools that a manager offers', () => {
  it('given names to include and to exclude, then those that are wanted; given a server that is disabled, then none', async () => {
    const url = await listing('a', 'b', 'c')
    const manager = await connect({
      one: { url, ...old, includeTools: ['a', 'b'] },
      two: { url, ...old, excludeTools: ['a', 'b'] },
      both: { url, ...old, includeTools: ['a', 'b'], excludeTools: ['b'] },
      off: { url, ...old, disabled: true },
      on: { url, ...old, disabled: false, includeTools: [] },
    })
    expect(names(manager)).toEqual(['mcp__one__a', 'mcp__one__b', 'mcp__two__c', 'mcp__both__a'])
    expect(manager.servers.map(({ name, tools }) => [name, tools])).toEqual([
      ['one', 2],
      ['two', 1],
      ['both', 1],
      ['on', 0],
    ])
    // It knows the others all the same.
    expect(await manager.call('on', 'a', {})).toEqual([{ type: 'text', text: 'done' }])
  })

  it('given two tools whose names are alike once they are cut, then the first server keeps its own', async () => {
    const [one, other] = ['錀丄', '侗丂']
    const shared = toExposedName('é', one)
    expect(toExposedName('è', other)).toBe(shared)
    const manager = await connect({
      é: { url: await listing(one), ...old },
      è: { url: await listing(other, 'more'), ...old },
    })
    expect(manager.tools.map(({ origin }) => origin)).toEqual([
      { server: 'é', name: one },
      { server: 'è', name: 'more' },
    ])
  })

  it('given a name that there is not, then the nearest three are named, or twenty of all, or that the server offers nothing', async () => {
    const letters = 'a b c d e f g h i j k l m n o p q r s t u'.split(' ')
    const manager = await connect({
      near: { url: await listing('work1', 'work2', 'work3', 'work4'), ...old },
      many: { url: await listing(...letters), ...old },
      empty: { url: await listing(), ...old },
    })
    const refusal = async (server: string, tool: string): Promise<string> =>
      await manager.call(server, tool, {}).then(String, ({ message }: Error) => message)
    expect(await refusal('near', 'work')).toBe(
      'The MCP server near has no tool "work". Did you mean work1, work2, work3?',
    )
    expect(await refusal('many', 'something')).toBe(
      `The MCP server many has no tool "something". There are ${letters.slice(0, 20).join(', ')}.`,
    )
    expect(await refusal('empty', 'something')).toBe(
      'The MCP server empty has no tool "something". It offers nothing.',
    )
    expect(await refusal('mani', 'a')).toBe('There is no MCP server "mani" here. Did you mean many?')
    expect(await refusal('elsewhere', 'a')).toBe(
      'There is no MCP server "elsewhere" here. There are near, many, empty.',
    )
  })
})

describe('a call that no agent makes', () => {
  it.each([
    [true, 'done'],
    [false, 'interrupted'],
    [undefined, 'interrupted'],
  ])(
    'given a tool that only reads, of a server that is trusted: %s, when the answer is lost, then it ends as %s',
    async (trusted, ends) => {
      const tools = [{ ...listed('look'), annotations: { readOnlyHint: true } }]
      const { url } = await scriptedServer({
        'tools/list': ({ say }) => say({ result: { tools } }),
        'tools/call': ({ times, response, say }) => {
          if (times === 1) response.destroy()
          else say({ result: { content: [{ type: 'text', text: 'done' }] } })
        },
      })
      const manager = await connect({ own: { url, ...old, trusted } })
      const ended = await manager
        .call('own', 'look', {})
        .then(joinText, ({ outcome }: { outcome: string }) => outcome)
      expect(ended).toBe(ends)
    },
  )
})

describe('the servers of a manager', () => {
  it('given what a server calls itself, then it is shown, cut and on one line', async () => {
    const serverInfo = { name: 'n'.repeat(110), version: '1\n2' }
    const { url } = await scriptedServer({
      initialize: ({ say }) => say({ result: { ...hello, serverInfo } }),
    })
    const manager = await connect({ own: { url, ...old } })
    expect(manager.servers).toEqual([
      {
        ...{ name: 'own', state: 'ready', transport: 'http', tools: 1, faults: [] },
        server: { name: `${'n'.repeat(92)} … (cut)`, version: '1 2' },
        protocolVersion: '2025-11-25',
      },
    ])
  })

  it('given they are closed, in either way, then that is one end, and no change is reported any more', async () => {
    const manager = await mcpTools({ servers: { own: { url: await listing('a'), ...old } } })
    const told = lastValueFrom(manager.changes$.pipe(toArray()))
    const closed = manager.close()
    expect(manager.close()).toBe(closed)
    expect(manager[Symbol.asyncDispose]()).toBe(closed)
    await closed
    expect(await told).toEqual([])
  })

  it('given they are disposed of first, then closing is the same end', async () => {
    const manager = await mcpTools({ servers: {} })
    const disposed = manager[Symbol.asyncDispose]()
    expect(manager.close()).toBe(disposed)
    expect(manager[Symbol.asyncDispose]()).toBe(disposed)
    await disposed
  })
})
