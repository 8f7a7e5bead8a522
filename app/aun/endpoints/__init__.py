"""What messaging answers over HTTP besides calls: certificates, cards, where the gateway is."""
