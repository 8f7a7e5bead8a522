"""Messaging: any AUN client, the people of the console and hosted agents share one store."""
