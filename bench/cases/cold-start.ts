import type { Case } from './case.ts'
import { cliPath, start } from './started-process.ts'

/** The program that Node runs, by the name of the subject. */
const commands: Readonly<Record<string, () => readonly string[]>> = {
  core: () => importing('@tallystick/core'),
  'core-sqlite-tools': () => importing('@tallystick/core', '@tallystick/ledger/sqlite', '@tallystick/tools'),
  'core-sqlite-tools-anthropic': () =>
    importing(
      '@tallystick/core',
      '@tallystick/ledger/sqlite',
      '@tallystick/tools',
      '@tallystick/providers/anthropic',
    ),
  'cli-version': () => [cliPath(), '--version'],
  'bare-node': () => importing(),
  ai: () => importing('ai'),
  'openai-agents': () => importing('@openai/agents'),
  mastra: () => importing('@mastra/core/agent'),
  langgraph: () => importing('@langchain/langgraph', '@langchain/core/tools'),
  pi: () => importing('@earendil-works/pi-agent-core'),
}

export const coldStart: Case = {
  name: 'cold-start',
  what: 'A process that loads a package and ends, and one that runs `tallystick --version`; bare-node loads nothing.',
  isComparison: true,
  unit: 'start',
  params: [{}],
  smokeParams: [{}],
  own: ['core', 'core-sqlite-tools', 'core-sqlite-tools-anthropic', 'cli-version'],
  floors: ['bare-node'],
  peers: ['ai', 'openai-agents', 'mastra', 'langgraph', 'pi'],
  async measure({ subject, smoke }) {
    const command = commands[subject]
    if (command === undefined) throw new Error(`There is no start called ${subject}.`)
    const parameters = command()
    // Once before, so that the files are in the memory of the system.
    if (!smoke) await start(parameters)
    const { wallMs, output, ...report } = await start(parameters)
    if (subject === 'cli-version' && !/\d+\.\d+\.\d+/.test(output)) throw new Error(`It printed ${output}.`)
    return { units: 1, wallMs, ...report }
  },
}

function importing(...specifiers: readonly string[]): readonly string[] {
  return [
    '--input-type=module',
    '-e',
    specifiers.map((specifier) => `import ${JSON.stringify(specifier)}`).join('\n'),
  ]
}
