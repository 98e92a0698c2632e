import { pathToFileURL } from 'node:url'
import { createRuntime, defineAgent, type Limits, memoryLedger, joinText } from '@tallystick/core'
import type { EventOf, JsonObject } from '@tallystick/core/vocabulary'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import { type McpManager, type McpOptions, mcpTools } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { connect, tick } from './connected.ts'
import { ownServer, realServer } from './servers/real-servers.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

type Hooks = Pick<McpOptions, 'elicit' | 'sample' | 'sampleLimits'>

async function asking(hooks: Hooks): Promise<McpManager> {
  return await connect({ odd: ownServer('asking-server.ts') }, hooks)
}

async function answersTo(
  manager: McpManager,
  ask: readonly JsonObject[],
): Promise<readonly Record<string, unknown>[]> {
  return JSON.parse(joinText(await manager.call('odd', 'work', { ask }))) as Record<string, unknown>[]
}

const words = { type: 'text', text: '\u001b[2JSay\u202e yes.' }
const sampling = (maxTokens = 100, content: JsonObject = words) => ({
  method: 'sampling/createMessage',
  params: { maxTokens, messages: [{ role: 'user', content }] },
})
const eliciting = (params: JsonObject) => ({
  method: 'elicitation/create',
  params: { message: 'Well?', requestedSchema: { type: 'object', properties: {} }, ...params },
})
const reply = { model: 'm', role: 'assistant' as const, content: { type: 'text' as const, text: 'Yes.' } }

describe('given a server that asks for answers of a model, when it asks for many within a call', () => {
  it('then it gets as many as it may, one at a time, with no more tokens than it may', async () => {
    let [asked, live, most] = [0, 0, 0]
    const given: unknown[] = []
    const sample: Hooks['sample'] = async ({ maxTokens, messages }) => {
      given.push([maxTokens, messages[0]?.content])
      asked++
      most = Math.max(most, ++live)
      await new Promise(setImmediate)
      live--
      return reply
    }
    const manager = await asking({ sample })
    const many = Array.from({ length: 60 }, () => sampling(100_000))
    const answers = await answersTo(manager, many)
    expect([asked, most]).toEqual([3, 1])
    expect(answers.filter((answer) => 'content' in answer)).toHaveLength(3)
    expect(given[0]).toEqual([4_096, { type: 'text', text: 'Say yes.' }])
    // Another call may ask again.
    await answersTo(manager, [sampling()])
    expect(asked).toBe(4)
    const strict = await asking({ sample, sampleLimits: { maxPerCall: 1, maxTokens: 10 } })
    await answersTo(strict, many)
    expect([asked, given.at(-1)]).toMatchObject([5, [10, {}]])
  })
})

describe('given a run whose call has a server ask for answers of a model', () => {
  const many = Array.from({ length: 50 }, () => sampling(4_000))
  async function run(
    limits: Limits,
    sample: NonNullable<Hooks['sample']>,
    ask: readonly JsonObject[] = many,
  ) {
    const manager = await asking({ sample, sampleLimits: { maxPerCall: 50 } })
    const usage = { inputTokens: 10, outputTokens: 10 }
    const model = scriptedModel([
      { toolCalls: [{ name: 'mcp__odd__work', input: { ask } }], usage },
      { text: 'Done.', usage },
    ])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: manager.tools, limits })
    const ledger = memoryLedger()
    const result = await createRuntime({
      ledger,
      agents: [agent],
      prices: () => ({ inputUsd: 0, outputUsd: 0 }),
    }).run(agent, 'Go.').result
    const events = await Array.fromAsync(ledger.read(result.runId))
    expect(checkLaws(events)).toEqual([])
    const spent = events.filter((event): event is EventOf<'tool_progress'> => event.type === 'tool_progress')
    return { result, spent: spent.map((event) => event.spent) }
  }
  const used = { inputTokens: 600, outputTokens: 400 }

  it('then each is on record and counts as tokens, cost and a turn of the run', async () => {
    const { result, spent } = await run({ maxTurns: 6 }, () => ({ ...reply, usage: used, costUsd: 0.5 }))
    // One turn asked for the call, and one is held back for the answer of the run.
    expect(spent).toEqual(
      [1, 2, 3, 4].map(() => ({
        model: { provider: 'mcp', api: 'sampling', modelId: 'm' },
        usage: used,
        costUsd: 0.5,
      })),
    )
    expect(result).toMatchObject({ text: 'Done.', reason: 'turn_limit', costUsd: 2 })
    expect(result.usage).toMatchObject({ inputTokens: 4 * 600 + 20, outputTokens: 4 * 400 + 20 })
  })

  it('then no answer is asked for that the tokens or the money which are left do not cover', async () => {
    const given: number[] = []
    const { spent, result } = await run({ maxTotalTokens: 20_000 }, ({ maxTokens }) => {
      given.push(maxTokens)
      return { ...reply, usage: { inputTokens: 30, outputTokens: maxTokens } }
    })
    expect(spent.length).toBeLessThan(5)
    expect(given.at(-1)).toBeLessThan(4_000)
    expect(Math.max(...given)).toBe(4_000)
    expect(result.reason).toBe('token_limit')
    expect(result.usage.outputTokens).toBeLessThan(20_000)
    // What an answer costs is known after it: the one that goes past the limit is the last.
    const { spent: paid } = await run({ maxCostUsd: 1 }, () => ({ ...reply, costUsd: 0.4 }))
    expect(paid.map((each) => each?.costUsd)).toEqual([0.4, 0.4, 0.4])
    const { spent: unpriced } = await run({ maxCostUsd: 1 }, () => reply)
    expect(unpriced).toHaveLength(1)
    expect(unpriced[0]?.usage.inputTokens).toBeGreaterThan(10)
  })

  it('then none is asked for whose question takes more input tokens than are left', async () => {
    const limits = { maxTotalInputTokens: 1_500 }
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    const { spent } = await run(limits, () => reply, [sampling(100, image), sampling(100)])
    expect(spent.map((each) => (each?.usage.inputTokens ?? 0) < 1_000)).toEqual([true])
  })
})

describe('given a server that asks its user, when it asks', () => {
  it('then its words come without what a terminal obeys, ten times within a call at most', async () => {
    const shown: unknown[] = []
    const manager = await asking({
      elicit: (request) => {
        shown.push(request)
        return { action: 'decline' }
      },
    })
    const properties = {
      name: { type: 'string', title: 'Your\u001b[31m name\u0007', description: 'a\u202eb' },
    }
    const odd = eliciting({
      message: '\u001b[2JYour\u200e bank?\u0000',
      requestedSchema: { type: 'object', properties },
    })
    await answersTo(
      manager,
      Array.from({ length: 30 }, () => odd),
    )
    expect(shown).toHaveLength(10)
    expect(JSON.stringify(shown[0])).not.toMatch(/\\u001b|\\u0007|\\u0000|\u202e/)
    expect(shown[0]).toMatchObject({ requestedSchema: { properties: { name: { title: 'Your name' } } } })
  })

  it('then an address that is not a web page, or that hides its host, reaches nobody', async () => {
    const shown: unknown[] = []
    const manager = await asking({
      elicit: (request) => {
        shown.push('url' in request && request.url)
        return { action: 'accept' }
      },
    })
    const at = (url: string) => ({
      method: 'elicitation/create',
      params: { mode: 'url', elicitationId: 'e', message: 'Open.', url },
    })
    const refused = [
      'file:///etc/passwd',
      'javascript:alert(1)',
      'data:text/html,x',
      'https://bank.example@evil.example',
      'x',
    ]
    const answers = await answersTo(manager, refused.map(at))
    expect(shown).toEqual([])
    expect(answers.every((answer) => 'code' in answer)).toBe(true)
    await answersTo(manager, [at('https://shop.example/pay')])
    expect(shown).toEqual(['https://shop.example/pay'])
  })
})

// The folders that a server should work in, read by servers that others wrote.

function newFolder(): string {
  const folder = temporaryFolder()
  return folder
}

describe('the roots of a server', () => {
  it('given as a path and as a URL, are the folders in which server-filesystem works', async () => {
    const [first, second] = [newFolder(), newFolder()]
    const roots = [first, pathToFileURL(second).href]
    const manager = await connect({ files: realServer('filesystem', [], { roots }) })
    let allowed = ''
    // The server asks for its roots once it was told that the client is there.
    while (!allowed.includes(first)) {
      await tick()
      allowed = joinText(await manager.call('files', 'list_allowed_directories', {}).catch(() => []))
    }
    expect(allowed).toBe(`Allowed directories:\n${first}\n${second}`)
  })

  it('not given, are not offered to the server', async () => {
    const folder = newFolder()
    const manager = await connect({ files: realServer('filesystem', [folder]) })
    expect(joinText(await manager.call('files', 'list_allowed_directories', {}))).toBe(
      `Allowed directories:\n${folder}`,
    )
  })

  it.each([['relative/path'], ['https://a.example/'], [7], ['']])('%j is refused', async (root) => {
    const servers = { files: { command: 'node', roots: [root as string] } }
    await expect(mcpTools({ servers })).rejects.toThrow(
      /roots\[0\] .*expected an absolute path or a file: URL/,
    )
  })
})
