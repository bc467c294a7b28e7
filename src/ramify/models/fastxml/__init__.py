"""FastXML and PfastreXML."""
