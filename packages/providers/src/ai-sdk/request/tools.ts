import type { ModelRequest } from '@tallystick/core'
import type { ToolChoice } from '@tallystick/core/vocabulary'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { WireCall } from '../client/wire.ts'

/** Tools stay in the call when they may not be called: some vendors want them there when the history holds calls. */
export function toolsOf(request: ModelRequest, called: readonly string[], names: ToolNames): object {
  const { tools, toolChoice } = request
  if (tools.length > 0) {
    const offered = tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      name: names.toWire(name),
      ...(description.trim() !== '' && { description: description.toWellFormed() }),
      inputSchema: { type: 'object', ...inputSchema },
    }))
    return { tools: offered, toolChoice: choiceOf(toolChoice, names) }
  }
  if (called.length === 0) return {}
  const past = called.map((name) => ({
    type: 'function',
    name: names.toWire(name),
    inputSchema: { type: 'object' },
  }))
  return { tools: past, toolChoice: { type: 'none' } }
}

function choiceOf(choice: ToolChoice, names: ToolNames): WireCall['toolChoice'] & object {
  switch (choice.type) {
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'tool', toolName: names.toWire(choice.name) }
    case 'auto':
    case 'none':
      return { type: choice.type }
  }
}
