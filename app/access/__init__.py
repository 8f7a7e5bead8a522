"""What a principal may do: permission, data scope, organisation scope, as one SQL filter."""
