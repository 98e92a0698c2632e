/** What makes no stores. */
export default { open: 'soon' }
