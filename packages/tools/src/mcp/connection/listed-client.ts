import type { Client, Tool } from '@modelcontextprotocol/client'
import { type ClientEvents, newClient } from './new-client.ts'
import { type OpenedClient, openClient } from './open-client.ts'
import type { NamedServer, SharedParts } from './shared-parts.ts'
import { noTimeoutMs } from './waiting.ts'

/** What a connected client reports. */
export interface ConnectionEvents extends Pick<ClientEvents, 'onQuestion' | 'questions'> {
  readonly onTools: (from: OpenedClient, tools: readonly Tool[]) => void
  readonly onLost: (from: OpenedClient) => void
}

/** A client that is connected, and the tools of its server. */
export interface ListedClient {
  readonly opened: OpenedClient
  readonly tools: readonly Tool[]
}

/** How often a user is sent to an authorization page before the tools are listed. */
const maxAuthorizations = 2

/** Connects to a server and reads its tools. Rejects with what went wrong; nothing is left of the attempt then. */
export async function listedClient(
  server: NamedServer,
  shared: SharedParts,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<ListedClient> {
  for (let authorizations = 0; ; authorizations++) {
    const listed = await attempt(server, shared, events, signal)
    if ('tools' in listed) return listed
    const { error, authorize } = listed
    // Some servers take the handshake without a token, and want one for their tools.
    const isAsked = error instanceof shared.sdk.UnauthorizedError
    if (!isAsked || authorize === undefined || authorizations >= maxAuthorizations) throw error
    await authorize()
  }
}

async function attempt(
  server: NamedServer,
  shared: SharedParts,
  { onTools, onLost, ...events }: ConnectionEvents,
  signal: AbortSignal,
): Promise<ListedClient | (Pick<OpenedClient, 'authorize'> & { readonly error: unknown })> {
  let opened: OpenedClient | undefined
  let isLost = false
  const onListChanged = (_error: Error | null, tools: readonly Tool[] | null): void => {
    if (opened !== undefined && tools !== null) onTools(opened, tools)
  }
  const make = (era?: 'legacy'): Client =>
    newClient(server, shared, { ...events, onTools: onListChanged }, era)
  const made = await openClient(server, make, shared, signal)
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a client is no event target
  made.client.onclose = () => {
    isLost = true
    onLost(made)
  }
  try {
    const tools = await listTools(made.client, signal)
    if (isLost) throw new Error('the connection was lost')
    opened = made
    return { opened, tools }
  } catch (error) {
    const why = isLost ? new Error(made.whyLost(), { cause: error }) : error
    await made.close().catch(() => {})
    const { authorize } = made
    return { error: why, ...(authorize && { authorize }) }
  }
}

/** All tools, of all pages; no tool of a server that does not have any. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly Tool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return []
  const { tools } = await client.listTools(undefined, { signal, timeout: noTimeoutMs })
  return tools
}
