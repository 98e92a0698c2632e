import type { Agent } from '@tallystick/core'

/** The card of an agent, with which clients of A2A find it: what it does, and where it listens. */
export function agentCard({ name, description = `The agent ${name}.` }: Agent<unknown>, url: string): object {
  const modes = ['text/plain']
  const scheme = {
    scheme: 'Bearer',
    description: 'What the application reads from a request.',
    bearerFormat: '',
  }
  return {
    name,
    description,
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: { bearer: { httpAuthSecurityScheme: scheme } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        ...{ id: name, name, description, tags: [], examples: [] },
        ...{ inputModes: modes, outputModes: modes, securityRequirements: [] },
      },
    ],
    signatures: [],
  }
}
