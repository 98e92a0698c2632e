// A server in a few lines of a shell, which starts in a moment: for what becomes of processes that end and come back.
import type { StdioServer } from '@tallystick/tools/mcp'

/** What such a server does. */
export interface ShellPlan {
  /** Lines of the shell that run when it starts, such as `exit 1`. */
  readonly first?: string
  /** Lines that run once its tools are listed. */
  readonly onListed?: string
  /** What it does at a call of a tool, by the name of the tool: lines of the shell, or `answer`. Without one, nothing. */
  readonly tools: Readonly<Record<string, string>>
}

/** The server, as a process. */
export function shellServer(plan: ShellPlan, more: Partial<StdioServer> = {}): StdioServer {
  const names = Object.keys(plan.tools)
  const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }))
  const say = (result: object): string => `say '${JSON.stringify(result)}'`
  const script = `
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$1"; }
answer() { ${say({ content: [{ type: 'text', text: 'done' }] })}; }
${plan.first ?? ''}
while read -r line; do
  id=\${line##*'"id":'}
  id=\${id%%[!0-9]*}
  case $line in
    *'"initialize"'*) ${say(hello)} ;;
    *'"tools/list"'*) ${say({ tools })}
      ${plan.onListed ?? ''} ;;
    ${names.map((name) => `*'"name":"${name}"'*) ${plan.tools[name]} ;;`).join('\n    ')}
  esac
done`
  return { command: '/bin/sh', args: ['-c', script], ...more }
}

const hello = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'shell', version: '1' },
}
