// What the page keeps in its tab's storage. The server has the rest.

/** The server's token, from the address that the server printed. It is removed from the address bar at once. */
export const token = kept('token', () => new URLSearchParams(location.hash.slice(1)).get('token') ?? '')
history.replaceState(null, '', location.pathname)

/** The id of the chat, which is a session of the ledger. */
export const chatId = kept('chat', () => crypto.randomUUID())

/** A value in the address wins over a stored one. */
function kept(name: string, find: () => string): string {
  const isGiven = location.hash.includes(`${name}=`)
  const value = (isGiven ? undefined : sessionStorage.getItem(name)) ?? find()
  sessionStorage.setItem(name, value)
  return value
}
