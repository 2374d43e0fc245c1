"""How a bare machine gets what earshot needs: Python packages, the Pulumi CLI, Java, jars."""
