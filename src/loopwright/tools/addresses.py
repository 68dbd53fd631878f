"""Which addresses a page may be fetched from: public ones, and those that a service has named."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence

from loopwright.errors import ConfigurationError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host for a port, each as text."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_LAST_32 = 0xFFFFFFFF
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "3fff::/20", "5f00::/16")))
"""For protocols, for documentation and for segment routing, by IANA: not every Python knows them."""


class AddressRefused(PermissionError):
    """A host is not to be reached from here; nothing was sent to it."""


def parse_networks(named: Iterable[str]) -> tuple[Network, ...]:
    """Read networks such as `10.1.0.0/16` or `192.0.2.7`.

    Raises:
        ConfigurationError: Naming the one that is none.
    """
    networks: list[Network] = []
    for name in named:
        try:
            networks.append(ipaddress.ip_network(name))
        except ValueError as error:
            text = f"{name!r} is no network ({error}); give one as 10.1.0.0/16, or an address"
            raise ConfigurationError(text, option="private") from error
    return tuple(networks)


def check_address(host: str, address: str, private: Sequence[Network]) -> None:
    """Refuse an address that is not public, in whatever form it hides another one, unless its network was named.

    Raises:
        AddressRefused: Naming the host and what its address is.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if any(found in network for network in private if network.version == found.version):
        return
    for one in (found, *_inner(found)):
        is_local = isinstance(one, ipaddress.IPv6Address) and one.is_site_local  # which Python calls global
        is_special = any(one in network for network in _SPECIAL if network.version == one.version)
        if not one.is_global or is_local or is_special or one.is_multicast or one.is_reserved:
            raise AddressRefused(f"{host} is at {address}, which is not on the public internet; it is not read")


def _inner(address: Address) -> list[Address]:
    """Return the IPv4 addresses that an IPv6 address stands for: mapped, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    inner: list[Address] = [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
    if address.teredo is not None:
        inner += address.teredo
    if address in _NAT64 or address in _NAT64_LOCAL:
        inner.append(ipaddress.IPv4Address(int(address) & _LAST_32))
    return inner
