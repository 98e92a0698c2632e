// Which options and tools can be served, and at which hosts.
import { agentTool, ConfigurationError, defineAgent, handoff, type Tool } from '@tallystick/core'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { serveMcp, type ServeMcpOptions } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ownTools } from '../servers/own-tools.ts'

const { add } = ownTools()
const token = 'token-0123456789'
const agent = defineAgent({
  ...{ name: 'a', description: 'b', instructions: '', model: scriptedModel([]), tools: [] },
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

/** The URL at which tools are served, until the test ends. */
async function urlOf(options: ServeMcpOptions, tools: readonly Tool[] = [add]): Promise<string> {
  const server = await serveMcp(tools, options)
  onTestFinished(() => server.close())
  return server.url ?? ''
}

const refusal = async (options: object, tools?: readonly Tool[]): Promise<unknown> =>
  await urlOf(options, tools).catch((error: unknown) => error)

describe('the options of serveMcp', () => {
  it.each([
    [{ port: 1 }, 'port is not an option. Did you mean http?'],
    [{ transport: 'http' }, 'transport is not an option. Did you mean http?'],
    [{ onApproval: () => true }, 'onApproval is not an option. Did you mean approve?'],
    ...[-1, 0.5, 65_536, '80'].map((port) => [{ http: { port } }, 'expected a port from 1 to 65535']),
  ] as [object, string][])('given %o, then they are refused: %s', async (options, why) => {
    const error = await refusal(options)
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error).toMatchObject({ message: expect.stringContaining(why) as string })
  })

  it('given the port of another server, then it says that it cannot listen there; given a free one or 0, it does', async () => {
    const url = new URL(await urlOf({ http: { port: 0 }, context: { user: 'ada' } }))
    expect(url.pathname).toBe('/mcp')
    const taken = await refusal({ http: { port: Number(url.port) } })
    expect(taken).toBeInstanceOf(ConfigurationError)
    expect(taken).toMatchObject({
      message: expect.stringContaining(`it cannot listen at 127.0.0.1:${url.port} (`) as string,
    })
    // The largest port: another program may listen there.
    expect(await refusal({ http: { port: 65_535 } })).toSatisfy(
      (answer) => answer === 'http://127.0.0.1:65535/mcp' || String(answer).includes('cannot listen'),
    )
  })

  it.each([
    ['localhost', undefined, /^http:\/\/localhost:\d+\/mcp$/],
    ['127.1.2.3', undefined, /^http:\/\/127\.1\.2\.3:\d+\/mcp$/],
    ['0.0.0.0', token, /^http:\/\/0\.0\.0\.0:\d+\/mcp$/],
    // A machine may have no such address.
    ['::1', undefined, /^http:\/\/\[::1\]:\d+\/mcp$|cannot listen at ::1:0/],
  ])('given the host %s and the token %s, then it is served there', async (host, given, url) => {
    expect(String(await refusal({ http: { host, token: given } }))).toMatch(url)
  })
})

describe('the tools of serveMcp', () => {
  it('given an agent and a runtime, then it is served; given another tool that is a run, it is not', async () => {
    expect(await urlOf({ http: {}, runtime }, [agentTool(agent)])).toContain('/mcp')
    const other = { ...add, child: { agent: 'a' } } as unknown as Tool
    expect(await refusal({ http: {}, runtime }, [other])).toMatchObject({
      message:
        'serveMcp: the tool add is an agent, which only a runtime runs. Give the runtime as an option.',
    })
  })

  it('given a handoff, then it is refused', async () => {
    const { tool } = handoff(agent)
    expect(await refusal({ http: {}, runtime }, [tool])).toMatchObject({
      message: `serveMcp: the tool ${tool.name} hands a conversation over, and a client's call has no conversation.`,
    })
  })
})
